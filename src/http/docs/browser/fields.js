// @ts-check
// The list of fields of a body, a reply or the parameters: name, type, limits and description, with
// nested fields that open.
import { element } from './dom.js'
import { firstSentence, limitsOf, shapesOf, typeOf, valuesOf } from './schema-words.js'

/** @typedef {Record<string, any>} Json */
/** @typedef {import('./schema-words.js').Row} Row */
/** @typedef {import('./schema-words.js').Shape} Shape */

/** More values are folded. */
const maxValues = 8
/** Descriptions up to this length are shown whole. */
const wholeDescription = 160

/** @param {string} text @returns {(Node | string)[]} The text, with code in backticks. */
const withCode = (text) =>
  text
    .split('`')
    .map((piece, index) => (index % 2 ? element('code', {}, piece) : piece.replace(/\\(?=[!-/:-@[-`{-~])/g, '')))

/**
 * Returns the paragraphs and lists of a description. Descriptions have no other Markdown.
 * @param {string} text @returns {HTMLElement[]}
 */
export const paragraphsOf = (text) =>
  text.split(/\n\s*\n/).map((part) => {
    const lines = part.split(/\n(?=- )/)
    if (!part.startsWith('- ')) return element('p', {}, ...withCode(part))
    return element('ul', {}, ...lines.map((line) => element('li', {}, ...withCode(line.slice(2)))))
  })

/**
 * Returns a `details` whose content is made when it is opened or printed. Schemas can be recursive.
 * @param {string} className @param {(Node | string)[]} summary @param {() => Node[]} content
 */
export function folded(className, summary, content) {
  const made = element('details', { class: className }, element('summary', {}, ...summary))
  const fill = () => {
    if (made.childElementCount === 1) made.append(...content())
  }
  made.addEventListener('toggle', fill)
  made.addEventListener('accord-fill', fill)
  return made
}

// Fills the closed parts once before frame.js opens them for printing, and not the parts in them.
addEventListener('beforeprint', () => {
  for (const each of document.querySelectorAll('main details:not([open])')) each.dispatchEvent(new Event('accord-fill'))
})

/** @param {string} text @returns {HTMLElement[]} */
function descriptionOf(text) {
  if (text.length <= wholeDescription) return text === '' ? [] : paragraphsOf(text)
  const [first, rest] = firstSentence(text)
  if (rest === '') return paragraphsOf(first)
  return [...paragraphsOf(first), folded('more', ['More'], () => paragraphsOf(rest))]
}

/** @param {unknown[]} values @returns {HTMLElement[]} */
function valueList(values) {
  if (values.length === 0) return []
  const all = () => values.map((each) => element('code', {}, each === null ? 'null' : String(each)))
  if (values.length === 1) return [element('p', { class: 'values' }, 'Only ', ...all())]
  if (values.length <= maxValues) return [element('p', { class: 'values' }, 'One of ', ...all())]
  return [folded('values', [`One of ${values.length} values`], () => [element('p', { class: 'values' }, ...all())])]
}

/** @param {Shape[]} shapes @param {Json} schemas @returns {HTMLElement[]} */
const shapeLists = (shapes, schemas) =>
  shapes.map(({ label, rows }) => {
    const list = () => fieldList(rows, schemas)
    return label === '' ? list() : folded('shape', [...withCode(label)], () => [list()])
  })

/** @param {Row} row @param {Json} schemas @param {boolean} isOpen */
function fieldItem({ name, schema, required, description }, schemas, isOpen) {
  const shapes = shapesOf(schema, schemas)
  const count = shapes.reduce((sum, { rows }) => sum + rows.length, 0)
  const label =
    shapes.length > 1 && shapes[0]?.label !== ''
      ? `${shapes.length} forms`
      : `${count} ${count === 1 ? 'field' : 'fields'}`
  const nested =
    count > 0 && folded('nested', [`${label} of `, element('code', {}, name)], () => shapeLists(shapes, schemas))
  if (nested && isOpen) {
    nested.append(...shapeLists(shapes, schemas))
    nested.setAttribute('open', '')
  }
  return element(
    'li',
    { 'data-field': name },
    element(
      'div',
      { class: 'field-head' },
      element('code', { class: 'field-name' }, name),
      element('span', { class: 'field-type' }, typeOf(schema, schemas)),
      required && element('span', { class: 'field-required' }, 'required'),
      ...limitsOf(schema, schemas).map((each) => element('span', { class: 'field-limit' }, each)),
    ),
    ...descriptionOf(description),
    ...valueList(valuesOf(schema, schemas)),
    nested,
  )
}

/**
 * Returns the list of fields. `open` names a field whose nested fields are shown at first.
 * @param {Row[]} rows @param {Json} schemas @param {string} open
 */
export const fieldList = (rows, schemas, open = '') =>
  element('ul', { class: 'fields' }, ...rows.map((row) => fieldItem(row, schemas, row.name === open)))

/**
 * Returns the fields of a body or reply, or its type if it has no fields.
 * @param {Json} schema @param {Json} schemas
 */
export function fieldsOf(schema, schemas) {
  const shapes = shapesOf(schema, schemas)
  const type = typeOf(schema, schemas)
  // Replies have the record in `data`.
  const [only] = shapes
  if (shapes.length === 1 && only)
    return [
      ...(type.startsWith('list') ? [element('p', { class: 'quiet' }, `A ${type}, each with:`)] : []),
      fieldList(only.rows, schemas, only.rows.length <= 4 ? 'data' : ''),
    ]
  if (shapes.length > 1) return shapeLists(shapes, schemas)
  return [
    element('p', { class: 'quiet' }, `${type[0]?.toUpperCase()}${type.slice(1)}.`),
    ...valueList(valuesOf(schema, schemas)),
  ]
}
