// @ts-check
// Renders an operation: at the left its description, fields and errors, at the right its samples.
import { addressOf, base, buttonOf, copy, element } from './dom.js'
import { fieldList, fieldsOf, folded, paragraphsOf } from './fields.js'
import { piecesOf } from './highlight.js'
import { languages, requestOf } from './samples.js'
import { openTryOut } from './try-out.js'

/** @typedef {Record<string, any>} Json */
/** @typedef {import('./tag-documents.js').Operation} Operation */
/** @typedef {import('./schema-words.js').Row} Row */

/** Query parameters of lists that are not filters. */
const controls = new Set(['page', 'per_page', 'limit', 'count', 'cursor', 'sort', 'include', 'fields', 'q', 'format'])
/** More filters are folded. */
const maxFilters = 4

/** @param {string} title @param {string} className @param {...(Node | string | false | null)} children */
const section = (title, className, ...children) =>
  element('section', { class: className }, element('h5', {}, title), ...children)

/** @param {Json} operation Returns permission, ability, events and related operations. */
function factsOf(operation) {
  const { 'x-events': events = [], 'x-related': related = [], 'x-permission': permission, security } = operation
  const isPublic = security?.length === 0
  /** @type {[string, (Node | string)[]][]} */
  const rows = [
    [
      'Permission',
      isPublic
        ? ['none: anyone may call it']
        : [permission ? element('code', {}, permission) : (operation['x-any-user'] ?? 'any user')],
    ],
  ]
  if (operation['x-ability']) rows.push(['Token ability', [element('code', {}, operation['x-ability'])]])
  if (events.length > 0)
    rows.push([
      'Events',
      events.map((/** @type {string} */ name) =>
        element('a', { href: `${base}/guides/webhooks#event-${name}` }, element('code', {}, name)),
      ),
    ])
  if (related.length > 0)
    rows.push([
      'Same record',
      related.map((/** @type {Json} */ { id, tag, summary }) => element('a', { href: addressOf(tag, id) }, summary)),
    ])
  return element(
    'dl',
    { class: 'facts' },
    ...rows.flatMap(([name, values]) => [element('dt', {}, name), element('dd', {}, ...values)]),
  )
}

/** @param {Json} parameter @returns {Row} */
const rowOf = ({ name, schema, required, description }) => ({ name, schema, required: required === true, description })

/** The operators of filters, in words. @type {Readonly<Record<string, string>>} */
const operators = {
  '': 'equals',
  '[not]': 'is not',
  '[null]': 'has no value',
  '[gt]': 'more than',
  '[gte]': 'at least',
  '[lt]': 'less than',
  '[lte]': 'at most',
}

/** Returns one row for all filters by a field. @param {string} field @param {Json[]} members @param {Json} schemas */
function filterItem(field, members, schemas) {
  const [first = {}] = members
  const suffixes = members.map(({ name }) => name.slice(field.length))
  const [item] = /** @type {HTMLElement[]} */ ([...fieldList([{ ...rowOf(first), name: field }], schemas).children])
  const chips = suffixes.map((suffix) =>
    element('code', operators[suffix] ? { title: operators[suffix] } : {}, suffix || '='),
  )
  if (suffixes.some((suffix) => suffix !== ''))
    item?.querySelector('.field-head')?.append(element('span', { class: 'operators' }, ...chips))
  // Without a member of the same name, the descriptions are those of operators or attributes.
  if (!suffixes.includes('')) item?.querySelector('p')?.remove()
  return /** @type {HTMLElement} */ (item)
}

/** Returns the filters by field, folded if there are many. @param {Json[]} filters @param {Json} schemas */
function filtersOf(filters, schemas) {
  /** @type {Map<string, Json[]>} */
  const byField = new Map()
  for (const each of filters) byField.set(each['x-field'], [...(byField.get(each['x-field']) ?? []), each])
  const list = () =>
    element('ul', { class: 'fields' }, ...[...byField].map(([field, members]) => filterItem(field, members, schemas)))
  if (byField.size === 0) return null
  if (byField.size <= maxFilters) return list()
  const names = [...byField.keys()].map((name) => element('code', {}, name))
  return folded('filters', [`Filters by ${byField.size} fields`, element('span', { class: 'names' }, ...names)], () => [
    element(
      'p',
      { class: 'quiet' },
      'How filters work: ',
      element('a', { href: `${base}/guides/filtering` }, 'Filtering and sorting'),
    ),
    list(),
  ])
}

/** @param {Operation} found */
function parametersOf({ operation, schemas }) {
  /** @param {string} place @returns {Json[]} */
  const inPlace = (place) => operation.parameters.filter((/** @type {Json} */ each) => each.in === place)
  /** @param {string} title @param {Json[]} all */
  const list = (title, all) => all.length > 0 && section(title, 'parameters', fieldList(all.map(rowOf), schemas))
  const query = inPlace('query')
  const isControl = (/** @type {Json} */ { name, required }) => required || controls.has(name)
  const [shown, filters] = [query.filter(isControl), query.filter((each) => !isControl(each))]
  return [
    list('Path', inPlace('path')),
    query.length > 0 &&
      section(
        'Query',
        'parameters',
        shown.length > 0 && fieldList(shown.map(rowOf), schemas),
        filtersOf(filters, schemas),
      ),
    list('Headers', inPlace('header')),
  ]
}

/** @param {Json} content By media type. @param {Json} schemas @returns {Node[]} */
function mediaOf(content, schemas) {
  const [first, ...others] = Object.entries(content)
  if (!first) return []
  const [type, { schema = {} }] = first
  const same = others.filter(([, each]) => JSON.stringify(each.schema ?? {}) === JSON.stringify(schema))
  const different = others.filter((each) => !same.includes(each))
  return [
    ...fieldsOf(schema, schemas),
    element(
      'p',
      { class: 'quiet' },
      ...[type, ...same.map(([name]) => name)].flatMap((name, index) => [
        index > 0 ? ', ' : 'As ',
        element('code', {}, name),
      ]),
    ),
    ...different.map(([name, each]) =>
      folded('media', ['As ', element('code', {}, name)], () => fieldsOf(each.schema ?? {}, schemas)),
    ),
  ]
}

/** @param {Operation} found */
function bodyOf({ operation: { requestBody }, schemas }) {
  if (!requestBody) return null
  const { content = {}, description = '', required } = requestBody
  return section(
    required ? 'Body' : 'Body, optional',
    'request-body',
    ...(description ? paragraphsOf(description) : []),
    ...mediaOf(content, schemas),
  )
}

/** @param {Operation} found */
function repliesOf({ operation: { responses }, schemas }) {
  const replies = Object.entries(responses).filter(([status]) => status !== 'default')
  return section(
    'Replies',
    'replies',
    ...replies.map(([status, { description = '', content }]) =>
      element(
        'div',
        { class: 'reply', 'data-code': status },
        element('p', {}, element('b', {}, status), ' ', ...(paragraphsOf(description)[0]?.childNodes ?? [])),
        ...(content ? mediaOf(content, schemas) : []),
      ),
    ),
  )
}

/** @param {Json[]} errors */
const errorList = (errors) =>
  element(
    'dl',
    {},
    ...errors.flatMap(({ status, codes, description }) => [
      element('dt', {}, status),
      element(
        'dd',
        {},
        codes.length > 0 &&
          element(
            'span',
            { class: 'codes' },
            ...codes.map((/** @type {string} */ code) => element('a', { href: `${base}/errors#${code}` }, code)),
          ),
        ...paragraphsOf(description),
      ),
    ]),
  )

/** Returns the own errors, and those of most operations folded. @param {Operation} found */
function errorsOf({ operation, commonErrors }) {
  const own = operation['x-errors']
  const common = commonErrors.filter(({ status }) => operation['x-common'].includes(status))
  return section(
    'Errors',
    'errors',
    own.length > 0 && errorList(own),
    common.length > 0 &&
      folded('common', ['Common errors ', ...common.map(({ status }) => element('code', {}, status))], () => [
        errorList(common),
        element(
          'p',
          {},
          element('a', { href: `${base}/errors` }, 'All problem codes'),
          ' · ',
          element('a', { href: `${base}/guides/errors` }, 'How errors look'),
        ),
      ]),
  )
}

/** @param {string} text @param {string} label @returns {HTMLElement} A block of code. */
function codeOf(text, label) {
  const pieces = piecesOf(text).map(({ kind, text: piece }) => (kind ? element('span', { class: kind }, piece) : piece))
  return element('pre', { tabindex: '0', 'aria-label': label }, element('code', {}, ...pieces))
}

/** @type {string} The language that the reader chose last on this page. */
let chosenLanguage = 'curl'

/** @param {Operation} found */
function requestSample({ operation, path, method }) {
  const request = requestOf(operation, path, method, location.origin)
  const kinds = [
    ...languages.map(({ name, write }) => ({ name, text: () => write(request) })),
    ...(request.json === undefined ? [] : [{ name: 'JSON', text: () => JSON.stringify(request.json, null, 2) }]),
  ]
  const place = element('div', { class: 'code' })
  const tabs = kinds.map(({ name }) => buttonOf('', name, () => show(name)))
  let shown = ''
  /** @param {string} wanted */
  const show = (wanted) => {
    chosenLanguage = wanted
    const kind = kinds.find(({ name }) => name === wanted) ?? kinds[0]
    shown = kind?.text() ?? ''
    for (const tab of tabs) tab.setAttribute('aria-pressed', String(tab.textContent === kind?.name))
    place.replaceChildren(
      codeOf(shown, 'The request'),
      buttonOf('copy', 'Copy', (button) => copy(shown, button)),
    )
  }
  show(chosenLanguage)
  return element(
    'section',
    { class: 'samples', 'aria-label': 'Samples of the request' },
    element('div', { class: 'tabs' }, ...tabs),
    place,
  )
}

/** @param {Operation} found Returns the example of the first reply with one. */
function replySample({ operation: { responses } }) {
  for (const [status, { content = {} }] of Object.entries(responses)) {
    const [example] = Object.values(content).flatMap((each) => (each.example === undefined ? [] : [each.example]))
    if (example === undefined) continue
    const text = typeof example === 'string' ? example : JSON.stringify(example, null, 2)
    return element(
      'section',
      { class: 'reply-sample', 'aria-label': `Sample of the reply ${status}` },
      element('p', { class: 'code-title' }, 'Reply ', element('b', {}, status)),
      element(
        'div',
        { class: 'code' },
        codeOf(text, `The reply ${status}`),
        buttonOf('copy', 'Copy', (button) => copy(text, button)),
      ),
    )
  }
  return null
}

/**
 * Returns the content of an opened operation.
 * @param {Operation} found @returns {HTMLElement[]}
 */
export function operationParts(found) {
  const { operation } = found
  const inputs = element('div', { class: 'inputs' }, ...parametersOf(found))
  const form = element('div', { class: 'try-form' })
  const text = element(
    'div',
    { class: 'text' },
    ...(operation.description
      ? [element('div', { class: 'description' }, ...paragraphsOf(operation.description))]
      : []),
    factsOf(operation),
    element(
      'div',
      { class: 'try-out' },
      buttonOf('try-out__btn', 'Try it out', (button) => openTryOut({ found, button, inputs, form })),
    ),
    form,
    inputs,
    bodyOf(found),
    repliesOf(found),
    errorsOf(found),
  )
  return [text, element('div', { class: 'side' }, requestSample(found), replySample(found))]
}
