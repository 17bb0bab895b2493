// @ts-check
// Read-only views of parameters, body and responses. Swagger UI's own components also build forms
// and sample values, which is slow, so they are rendered only after "Try it out" or for a schema.

/** @typedef {Record<string, any>} Json */
/** @typedef {(props: Json) => any} Component */
/** @typedef {import('./operation-parts.js').Parts} Parts */

/**
 * Renders the row of a parameter, until "Try it out" replaces it by a form field.
 * @param {Parts} parts @returns {(Original: Component) => Component}
 */
export const readParameter =
  ({ system, h }) =>
  (Original) =>
  (props) => {
    if (props.isExecute) return h(Original, props)
    const get = (/** @type {string} */ key) => props.rawParam.get(key)
    const schema = get('schema')
    const [format, values] = [schema.get('format'), schema.get('enum') ?? schema.getIn(['items', 'enum'])]
    const Markdown = system.getComponent('Markdown', true)
    const required = get('required')
    return h(
      'tr',
      { 'data-param-name': get('name'), 'data-param-in': get('in') },
      h(
        'td',
        { className: 'parameters-col_name' },
        h(
          'div',
          { className: required ? 'parameter__name required' : 'parameter__name' },
          get('name'),
          required && h('span', null, ' *'),
        ),
        h(
          'div',
          { className: 'parameter__type' },
          system.fn.getSchemaObjectTypeLabel(schema),
          format && h('span', { className: 'prop-format' }, `($${format})`),
        ),
        h('div', { className: 'parameter__in' }, `(${get('in')})`),
      ),
      h(
        'td',
        { className: 'parameters-col_description' },
        get('description') && h(Markdown, { source: get('description') }),
        values?.size > 0 &&
          h('div', { className: 'parameter__enum' }, h('i', null, 'Available values'), ` : ${values.join(', ')}`),
      ),
    )
  }

/** @param {any} media A media type of the contract. @returns {string} Its example as text. */
function exampleOf(media) {
  const example = media.get('example')
  return typeof example === 'string' ? example : JSON.stringify(example, null, 2)
}

/**
 * Renders the example and the button for the schema, with the same elements as Swagger UI.
 * @param {Parts} parts @param {{ media: any, showSchema: () => void, id: string }} shown
 */
function exampleBox({ system, h }, { media, showSchema, id }) {
  const tab = (/** @type {string} */ title, /** @type {boolean} */ isActive) =>
    h(
      'li',
      { className: isActive ? 'tabitem active' : 'tabitem', role: 'presentation' },
      h(
        'button',
        {
          type: 'button',
          className: 'tablinks',
          role: 'tab',
          'aria-selected': isActive,
          ...(isActive ? { id: `${id}-tab`, 'aria-controls': id } : { onClick: showSchema }),
        },
        title,
      ),
    )
  return h(
    'div',
    { className: 'model-example' },
    h('ul', { className: 'tab', role: 'tablist' }, tab('Example Value', true), tab('Schema', false)),
    h(
      'div',
      { id, role: 'tabpanel', 'aria-labelledby': `${id}-tab`, tabIndex: 0 },
      h(system.getComponent('HighlightCode', true), null, exampleOf(media)),
    ),
  )
}

/**
 * Returns whether the schema is shown, and a function that shows it.
 * @param {Parts} parts @param {any} place The key under which Swagger UI stores the choice.
 * @returns {[boolean, () => void]}
 */
function useSchema({ system, React }, place) {
  const [isAsked, ask] = React.useState(false)
  return [
    isAsked,
    () => {
      system.layoutActions.show(place.push('show-model-tab').toJS(), true)
      ask(true)
    },
  ]
}

/** Renders a JSON body. @param {Parts} parts @returns {(Original: Component) => Component} */
export const readBody = (parts) => (Original) => (props) => {
  const { requestBody, specPath, isExecute } = props
  const content = requestBody.get('content')
  const type = props.contentType ?? content.keySeq().first()
  const [isAsked, showSchema] = useSchema(parts, specPath.push('content', type))
  const media = content.get(type)
  if (isExecute || isAsked || !type.endsWith('json') || media.get('example') === undefined)
    return parts.h(Original, props)
  return exampleBox(parts, { media, showSchema, id: idOf(specPath) })
}

/**
 * Renders a response with one media type.
 * @param {Parts} parts @returns {(Original: Component) => Component}
 */
export const readResponse = (parts) => (Original) => (props) => {
  const { h, system } = parts
  const { response, code, specPath } = props
  const content = response.get('content')
  const type = content?.keySeq().first()
  const [isAsked, showSchema] = useSchema(parts, specPath.push('content', type, 'schema'))
  const media = content?.first()
  if (isAsked || (content && (content.size > 1 || media.get('example') === undefined))) return h(Original, props)
  return h(
    'tr',
    { className: 'response', 'data-code': code },
    h('td', { className: 'response-col_status' }, code),
    h(
      'td',
      { className: 'response-col_description' },
      h(
        'div',
        { className: 'response-col_description__inner' },
        h(system.getComponent('Markdown', true), { source: response.get('description') }),
      ),
      media && exampleBox(parts, { media, showSchema, id: idOf(specPath) }),
    ),
    h('td', { className: 'response-col_links' }),
  )
}

/** @param {any} place Returns the element id for a place in the document. */
const idOf = (place) => place.join('-').replace(/[^\w-]/g, '_')
