// @ts-check
// Own components for the form of Swagger UI: filters grouped by field, the sent request, and code
// blocks.
import { copy } from './dom.js'
import { piecesOf } from './highlight.js'

/** @typedef {import('./tag-documents.js').Operation} Operation */
/** @typedef {Record<string, any>} Json */
/** @typedef {(props: Json) => any} Component */
/** @typedef {{ system: any, React: any, Im: any, h: any, found: Operation }} Parts */

/** @param {Operation} found The plug-in of Swagger UI. */
export const tryParts = (found) => (/** @type {any} */ system) => {
  const { React, Im } = system
  const h = React.createElement
  const parts = { system, React, Im, h, found }
  const nothing = () => null
  return {
    components: {
      TryOutLayout: layoutOf(parts),
      HighlightCode: codeOf(parts),
      curl: sentRequestOf(parts),
      OperationSummary: nothing,
      TryItOutButton: nothing,
    },
    wrapComponents: {
      Markdown: (/** @type {Component} */ Original) => (/** @type {Json} */ props) =>
        isPlain(props.source)
          ? h('div', { className: 'renderedMarkdown' }, h('p', null, withCode(props.source, h)))
          : h(Original, props),
      parameters: (/** @type {Component} */ Original) => (/** @type {Json} */ props) =>
        h(Original, { ...props, parameters: firstOfFields(props.parameters) }),
      parameterRow: groupedRowOf(parts),
      // The page shows the replies. Of the table, only the choice of a media type is left.
      response: (/** @type {Component} */ Original) => (/** @type {Json} */ props) =>
        props.response.get('content')?.size > 1 ? h(Original, props) : null,
    },
  }
}

/** Renders the form of the operation. @param {Parts} parts */
function layoutOf({ system, Im, h, found: { path, method, operation } }) {
  const { operationId, security = [] } = operation
  // Not the tag of the operation, because the element id of the form contains it.
  const tag = 'form'
  const entry = { operationId, summary: '', tags: [tag], security }
  const op = Im.fromJS({ id: operationId, path, method, operation: entry })
  const specPath = Im.List(['paths', path, method])
  return () => {
    const Operation = system.getComponent('OperationContainer', true)
    const resolved = system.specSelectors.specResolvedSubtree(['paths', path, method])
    return h('div', { className: 'swagger-ui' }, h(Operation, { tag, specPath, path, method, op, resolved }))
  }
}

/**
 * Returns whether a description has no Markdown except code in backticks. Most descriptions have
 * none, and Swagger UI's Markdown renderer takes a millisecond for each.
 * @param {unknown} source
 */
const isPlain = (source) =>
  typeof source === 'string' && source !== '' && !/[*_[\]<>&\\#~|\n]|:\/\//.test(source.replace(/`[^`]*`/g, ''))

/** @param {string} text @param {any} h The text, with code in backticks. */
const withCode = (text, h) =>
  text.split('`').map((piece, index) => (index % 2 ? h('code', { key: index }, piece) : piece))

/** @param {any} h @param {string} text */
const copyButton = (h, text) =>
  h(
    'button',
    { type: 'button', className: 'copy', onClick: (/** @type {any} */ event) => copy(text, event.currentTarget) },
    'Copy',
  )

/**
 * Keeps the first parameter of each field. `groupedRowOf` renders the others below it.
 * @param {any} parameters
 */
function firstOfFields(parameters) {
  const fields = new Set()
  return parameters.filter((/** @type {any} */ each) => {
    const isFirst = !fields.has(each.get('x-field'))
    fields.add(each.get('x-field'))
    return isFirst
  })
}

/** Renders the parameters of a field as one row that can be opened. @param {Parts} parts */
const groupedRowOf =
  ({ system, React, h }) =>
  (/** @type {Component} */ Row) => {
    const Group = (/** @type {Json} */ { field, members, props }) => {
      const [isOpen, open] = React.useState(false)
      const names = members.map((/** @type {any} */ each) => each.get('name').slice(field.length) || '=').toArray()
      const isFields = members.first().get('in') !== 'query'
      const row = (/** @type {any} */ each) =>
        h(Row, {
          ...props,
          key: each.get('name'),
          rawParam: each,
          param: system.specSelectors.parameterWithMetaByIdentity(props.pathMethod, each),
        })
      const shown = isFields ? members.map((/** @type {any} */ each) => each.get('name')).toArray() : names
      return h(
        React.Fragment,
        null,
        h(
          'tr',
          { className: 'field' },
          h(
            'td',
            { colSpan: 2 },
            h(
              'button',
              { type: 'button', 'aria-expanded': isOpen, onClick: () => open(!isOpen) },
              h('b', null, field),
              shown.map((/** @type {string} */ name) => h('code', { key: name }, name)),
            ),
          ),
        ),
        isOpen && members.map(row),
      )
    }
    return (/** @type {Json} */ props) => {
      const { rawParam, pathMethod } = props
      const field = rawParam.get('x-field')
      const all = system.specSelectors.specResolvedSubtree(['paths', ...pathMethod, 'parameters'])
      const members = all?.filter((/** @type {any} */ each) => each.get('x-field') === field)
      if (!members || members.size < 2) return h(Row, props)
      return h(Group, { field, members, props })
    }
  }

/** @param {Parts} parts */
function codeOf({ h }) {
  return (/** @type {Json} */ { children }) => {
    const text = String(children ?? '')
    const pieces = piecesOf(text).map(({ kind, text }, index) =>
      kind ? h('span', { key: index, className: kind }, text) : text,
    )
    return h('div', { className: 'code' }, h('pre', { tabIndex: 0 }, h('code', null, pieces)), copyButton(h, text))
  }
}

/**
 * Renders the request that "Try it out" sent as a curl command. In place of a token or a cookie it
 * has the variable of the samples, so that it runs in a terminal.
 * @param {Parts} parts
 */
function sentRequestOf({ h, found }) {
  return (/** @type {Json} */ { request }) => {
    const credentials = ['authorization', 'x-xsrf-token']
    const sent = Object.entries(request.get('headers').toJS())
    const headers = sent.filter(([name]) => !credentials.includes(name.toLowerCase()))
    const isPublic = found.operation.security?.length === 0
    const body = request.get('body')
    const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", `'\\''`)}'`
    const lines = [
      `curl -g -X ${request.get('method')} ${quoted(request.get('url'))}`,
      ...(isPublic ? [] : ['-H "Authorization: Bearer $ACCORD_TOKEN"']),
      ...headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
      ...(typeof body === 'string' ? [`-d ${quoted(body)}`] : []),
    ]
    const text = lines.join(' \\\n  ')
    return h(
      'div',
      { className: 'curl-command' },
      h('h4', null, 'The request'),
      h('div', { className: 'code' }, h('pre', { tabIndex: 0 }, h('code', null, text)), copyButton(h, text)),
    )
  }
}
