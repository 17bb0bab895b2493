// @ts-check
// The tags of the reference and their operations. The list comes from the sidebar in the HTML, so a
// tag opens without a request.
import { buttonOf, byId, element } from './dom.js'
import { operationParts } from './operation.js'
import { loadOperation, loadTag } from './tag-documents.js'

/** @param {string} tag @param {string} id Returns the element id of an operation. */
const blockId = (tag, id) => `operations-${tag}-${id}`.replace(/ /g, '_')

/** @param {string} tag @returns {HTMLElement | null} */
const headingOf = (tag) => document.querySelector(`.opblock-tag[data-tag="${CSS.escape(tag)}"]`)

/** @param {HTMLElement} heading Returns the address of the tag's document. */
const slugOf = (heading) => heading.getAttribute('data-slug') ?? ''

/** @param {HTMLElement} button @param {boolean} isOpen */
const setOpen = (button, isOpen) => button.setAttribute('aria-expanded', String(isOpen))
/** @param {HTMLElement | null | undefined} button */
const isOpen = (button) => button?.getAttribute('aria-expanded') === 'true'

/** @param {string} tag @param {Element} link A link of the sidebar. */
function closedOperation(tag, link) {
  const id = link.getAttribute('data-operation') ?? ''
  const [method, text] = link.children
  const path = text?.querySelector('small')?.textContent ?? ''
  const button = element(
    'button',
    { type: 'button', class: 'opblock-summary-control', 'aria-expanded': 'false' },
    method?.cloneNode(true) ?? '',
    element('span', { class: 'opblock-summary-description' }, text?.firstChild?.textContent ?? ''),
    element('code', { class: 'opblock-summary-path' }, path),
  )
  const block = element(
    'div',
    { class: 'opblock', id: blockId(tag, id), 'data-operation': id },
    element('h4', { class: 'opblock-summary' }, button),
  )
  button.addEventListener('click', () => {
    if (isOpen(button)) return closeOperation(block)
    history.replaceState(null, '', `#/${encodeURIComponent(tag)}/${id}`)
    void openOperation(tag, id)
  })
  return block
}

/** Opens a tag, and returns its section. @param {string} tag @returns {HTMLElement | null} */
export function openTag(tag) {
  const heading = headingOf(tag)
  const section = heading?.parentElement
  const button = heading?.querySelector('button')
  if (!heading || !section || !button) return null
  setOpen(button, true)
  const known = section.querySelector('.operations')
  if (known instanceof HTMLElement) known.hidden = false
  else {
    const links = document.querySelectorAll(`#sidebar details[data-tag="${CSS.escape(tag)}"] a`)
    section.append(element('div', { class: 'operations' }, ...[...links].map((link) => closedOperation(tag, link))))
  }
  loadTag(slugOf(heading)).catch(() => undefined)
  return section
}

/** @param {HTMLElement} block */
function closeOperation(block) {
  const button = block.querySelector('button')
  if (button) setOpen(button, false)
  block.classList.remove('is-open')
  const body = block.querySelector('.opblock-body')
  if (body instanceof HTMLElement) body.hidden = true
}

/**
 * Opens an operation and its tag. Resolves when it is shown, also if it could not be loaded.
 * @param {string} tag @param {string} id @returns {Promise<HTMLElement | null>}
 */
export async function openOperation(tag, id) {
  if (!openTag(tag)) return null
  const block = byId(blockId(tag, id))
  if (!block) return null
  setOpen(block.querySelector('button'), true)
  block.classList.add('is-open')
  let body = block.querySelector('.opblock-body')
  if (body) {
    body.hidden = false
    return block
  }
  body = element('div', { class: 'opblock-body' }, element('p', { role: 'status' }, 'Loading …'))
  block.append(body)
  await fill(body, tag, id)
  return block
}

/** @param {HTMLElement} body @param {string} tag @param {string} id */
async function fill(body, tag, id) {
  try {
    const heading = headingOf(tag)
    body.replaceChildren(...operationParts(await loadOperation(heading ? slugOf(heading) : '', id)))
  } catch (error) {
    const reason = navigator.onLine ? (error instanceof Error ? error.message : '') : 'This computer is offline.'
    const again = buttonOf('retry', 'Try again', () => fill(body, tag, id))
    body.replaceChildren(
      element('p', { role: 'alert', class: 'failed' }, `The operation could not be loaded. ${reason} `, again),
    )
  }
}

/** Lets readers open tags. */
export function startTags() {
  for (const heading of document.querySelectorAll('.opblock-tag')) {
    const button = heading.querySelector('button')
    if (!(heading instanceof HTMLElement) || !button) continue
    const tag = heading.getAttribute('data-tag') ?? ''
    button.addEventListener('click', () => {
      if (!isOpen(button)) return openTag(tag)
      setOpen(button, false)
      const list = heading.parentElement?.querySelector('.operations')
      if (list instanceof HTMLElement) list.hidden = true
    })
    button.addEventListener('pointerenter', () => loadTag(slugOf(heading)).catch(() => undefined))
  }
}
