// @ts-check
// Own components for Swagger UI: the list of tags and operations, the facts, samples and errors of
// an operation, filters grouped by field, and code blocks.
import { addressOf, base, copy } from './dom.js'
import { piecesOf } from './highlight.js'
import { readBody, readParameter, readResponse } from './reading.js'
import { languages, requestOf } from './samples.js'
import { openSignIn } from './session.js'
import { loadTag } from './tag-documents.js'

/** @typedef {import('./dom.js').Outline} Outline */
/** @typedef {Record<string, any>} Json */
/** @typedef {(props: Json) => any} Component */

/** @param {Outline} outline The plug-in of Swagger UI. */
export const operationParts = (outline) => (/** @type {any} */ system) => {
  const { React, Im } = system
  const h = React.createElement
  const parts = { system, React, Im, h, outline }
  const facts = factsOf(parts)
  const samples = samplesOf(parts)
  const errors = errorsOf(parts)
  return {
    components: {
      OperationsLayout: () => h('div', { className: 'swagger-ui' }, h(system.getComponent('operations', true))),
      operations: operationsOf(parts),
      HighlightCode: codeOf(parts),
      curl: sentRequestOf(parts),
      OperationSummary: summaryOf(parts),
    },
    wrapComponents: {
      Markdown: (/** @type {Component} */ Original) => (/** @type {Json} */ props) =>
        isPlain(props.source)
          ? h('div', { className: 'renderedMarkdown' }, h('p', null, withCode(props.source, h)))
          : h(Original, props),
      parameters: (/** @type {Component} */ Original) => (/** @type {Json} */ props) =>
        h(
          React.Fragment,
          null,
          h(facts, { operation: props.operation }),
          h(Original, { ...props, parameters: firstOfFields(props.parameters) }),
        ),
      parameterRow: (/** @type {Component} */ Original) => groupedRowOf(parts)(readParameter(parts)(Original)),
      RequestBody: readBody(parts),
      response: readResponse(parts),
      responses: (/** @type {Component} */ Original) => (/** @type {Json} */ props) => {
        const place = [props.path, props.method]
        const operation = system.specSelectors.specResolvedSubtree(['paths', ...place])
        if (!operation) return null
        return h(
          React.Fragment,
          null,
          h(samples, { operation, path: props.path, method: props.method }),
          h(Original, { ...props, responses: props.responses.delete('default') }),
          h(errors, { operation }),
        )
      },
    },
  }
}

/** @typedef {{ system: any, React: any, Im: any, h: any, outline: Outline }} Parts */

/**
 * Renders all tags, closed at first, and the operations of opened tags. page.ts renders the same
 * elements on the server, for the time until Swagger UI is loaded.
 * @param {Parts} parts
 */
function operationsOf({ system, Im, h, outline }) {
  /** @type {Map<string, Json[]>} The operations of opened tags, by tag name. */
  const opened = new Map()
  const operationsIn = (/** @type {Outline['tags'][number]} */ tag) => {
    const known = opened.get(tag.name)
    if (known) return known
    const made = tag.operations.map(({ id, path, method, summary, isPublic }) => ({
      specPath: Im.List(['paths', path, method]),
      path,
      method,
      op: Im.fromJS({
        id,
        path,
        method,
        operation: { operationId: id, summary, tags: [tag.name], security: isPublic ? [] : [{ bearer: [] }] },
      }),
    }))
    opened.set(tag.name, made)
    return made
  }
  const focused = document.activeElement?.closest('.opblock-tag')?.getAttribute('data-tag')
  return () => {
    const { layoutSelectors, layoutActions, specSelectors, getComponent } = system
    const Operation = getComponent('OperationContainer', true)
    return outline.tags.map((tag) => {
      const { name, slug, description, operations } = tag
      const place = ['operations-tag', name]
      const isOpen = layoutSelectors.isShown(place, false)
      const heading = h(
        'h3',
        { className: 'opblock-tag', id: `operations-tag-${name.replace(/ /g, '_')}`, 'data-tag': name },
        h(
          'button',
          {
            type: 'button',
            'aria-expanded': isOpen,
            autoFocus: name === focused,
            onClick: () => layoutActions.show(place, !isOpen),
            onPointerEnter: () => loadTag(slug),
          },
          h('span', { className: 'name' }, name),
          h('span', { className: 'what' }, description),
          h('span', { className: 'count' }, String(operations.length)),
        ),
      )
      const list =
        isOpen &&
        operationsIn(tag).map((each) => {
          // Swagger UI re-renders an operation only if one of its properties changes.
          const resolved = specSelectors.specResolvedSubtree(['paths', each.path, each.method])
          return h(Operation, { key: `${each.method} ${each.path}`, tag: name, resolved, ...each })
        })
      if (isOpen) loadTag(slug)
      return h('section', { key: name, className: 'tag' }, heading, list && h('div', null, list))
    })
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

/**
 * Renders permission, ability, events, and links to operations on the same record.
 * @param {Parts} parts
 */
function factsOf({ h }) {
  return (/** @type {Json} */ { operation }) => {
    const get = (/** @type {string} */ key) => operation.get(key)?.toJS?.() ?? operation.get(key)
    const [events = [], related = []] = [get('x-events'), get('x-related')]
    const isPublic = operation.get('security')?.size === 0
    const rows = [
      ['Permission', isPublic ? 'none: anyone may call it' : (get('x-permission') ?? get('x-any-user') ?? 'any user')],
      get('x-ability') && ['Token ability', h('code', null, get('x-ability'))],
      events.length > 0 && [
        'Events',
        events.map((/** @type {string} */ name) =>
          h('a', { key: name, href: `${base}/guides/webhooks#event-${name}` }, h('code', null, name)),
        ),
      ],
      related.length > 0 && [
        'Same record',
        related.map((/** @type {Json} */ { id, tag, summary }) =>
          h('a', { key: id, href: addressOf(tag, id) }, summary),
        ),
      ],
    ].filter(Boolean)
    return h(
      'dl',
      { className: 'facts' },
      rows.flatMap(([name, value]) => [
        h('dt', { key: name }, name),
        h('dd', { key: `${name}=` }, name === 'Permission' && get('x-permission') ? h('code', null, value) : value),
      ]),
    )
  }
}

/** @type {string} The language that the reader chose last on this page. */
let chosenLanguage = 'curl'

/** Renders the code samples of an operation. @param {Parts} parts */
function samplesOf({ React, h }) {
  return (/** @type {Json} */ { operation, path, method }) => {
    const [language, choose] = React.useState(chosenLanguage)
    const { write } = /** @type {typeof languages[number]} */ (languages.find(({ name }) => name === language))
    const text = React.useMemo(
      () => write(requestOf(withoutSchemas(operation), path, method, location.origin)),
      [operation, language],
    )
    const tab = (/** @type {string} */ name) =>
      h(
        'button',
        {
          key: name,
          type: 'button',
          'aria-pressed': name === language,
          onClick: () => {
            chosenLanguage = name
            choose(name)
          },
        },
        name,
      )
    return h(
      'section',
      { className: 'samples', 'aria-label': 'Samples' },
      h(
        'div',
        { className: 'tabs' },
        languages.map(({ name }) => tab(name)),
        copyButton(h, text),
      ),
      h('pre', { tabIndex: 0 }, h('code', null, text)),
    )
  }
}

/**
 * Returns the parts that samples need. Omits the schemas of responses, the largest part.
 * @param {any} operation
 */
function withoutSchemas(operation) {
  const content = operation.getIn(['requestBody', 'content'])
  return {
    parameters: operation.get('parameters')?.toJS() ?? [],
    security: operation.get('security')?.toJS(),
    requestBody: content && { content: content.toJS() },
    responses: operation
      .get('responses')
      .map((/** @type {any} */ each) => ({
        content: Object.fromEntries(
          (each.get('content')?.keySeq().toArray() ?? []).map((/** @type {string} */ type) => [type, {}]),
        ),
      }))
      .toObject(),
  }
}

/** @param {any} h @param {string} text */
const copyButton = (h, text) =>
  h(
    'button',
    { type: 'button', className: 'copy', onClick: (/** @type {any} */ event) => copy(text, event.currentTarget) },
    'Copy',
  )

/**
 * Renders the statuses of errors in one line, which opens to a list of their codes.
 * @param {Parts} parts
 */
function errorsOf({ h }) {
  const linkTo = (/** @type {string} */ code) => h('a', { key: code, href: `${base}/errors#${code}` }, code)
  return (/** @type {Json} */ { operation }) => {
    const errors = operation.get('x-errors').toJS()
    return h(
      'details',
      { className: 'errors' },
      h(
        'summary',
        null,
        'Errors ',
        errors.map((/** @type {Json} */ { status }) => h('code', { key: status }, status)),
      ),
      h(
        'dl',
        null,
        errors.flatMap((/** @type {Json} */ { status, codes, description }) => [
          h('dt', { key: status }, status),
          h(
            'dd',
            { key: `${status}=` },
            codes.length > 0 && h('span', { className: 'codes' }, codes.map(linkTo)),
            withCode(description, h),
          ),
        ]),
      ),
      h(
        'p',
        null,
        h('a', { href: `${base}/errors` }, 'All problem codes'),
        ' · ',
        h('a', { href: `${base}/guides/errors` }, 'How errors look'),
      ),
    )
  }
}

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
 * Renders the request that "Try it out" sent as a curl command, without the token.
 * @param {Parts} parts
 */
function sentRequestOf({ h }) {
  return (/** @type {Json} */ { request }) => {
    const headers = Object.entries(request.get('headers').toJS())
    const body = request.get('body')
    const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", `'\\''`)}'`
    const lines = [
      `curl -g -X ${request.get('method')} ${quoted(request.get('url'))}`,
      ...headers.map(([name, value]) =>
        name.toLowerCase() === 'authorization'
          ? `-H "${name}: Bearer $ACCORD_TOKEN"`
          : `-H ${quoted(`${name}: ${value}`)}`,
      ),
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

const lockPaths = {
  closed: 'M6 8V6a4 4 0 0 1 8 0v2h1v9H5V8zm2 0h4V6a2 2 0 0 0-4 0z',
  open: 'M6 8V5a4 4 0 0 1 7.9-1h-2.1A2 2 0 0 0 8 5v3h7v9H5V8z',
}

/**
 * Renders the head of an operation: a button, and the lock that opens the sign-in form.
 * @param {Parts} parts
 */
function summaryOf({ h }) {
  return (/** @type {Json} */ { isShown, toggleShown, operationProps }) => {
    const { op, summary, method, path, operationId, security, isAuthorized } = operationProps.toObject()
    const lock = h(
      'button',
      {
        type: 'button',
        className: 'lock',
        'aria-label': isAuthorized ? 'Authorized' : 'Authorize',
        onClick: openSignIn,
      },
      h(
        'svg',
        { viewBox: '0 0 20 20', width: 15, height: 15, fill: 'currentColor', 'aria-hidden': true },
        h('path', { d: isAuthorized ? lockPaths.closed : lockPaths.open }),
      ),
    )
    return h(
      'h4',
      { className: 'opblock-summary' },
      h(
        'button',
        { type: 'button', className: 'opblock-summary-control', 'aria-expanded': isShown, onClick: toggleShown },
        h('span', { className: `method ${method}` }, method === 'delete' ? 'del' : method),
        h('span', { className: 'opblock-summary-path' }, path),
        h('span', { className: 'opblock-summary-description' }, op.get('summary') ?? summary),
        h('span', { className: 'opblock-summary-operation-id' }, operationId),
      ),
      security?.size > 0 && lock,
    )
  }
}
