// @ts-check
// DOM helpers and the operation outline, which all modules share.

/** @param {string} id @returns {any} The element with this id, which the page always has. */
export const byId = (id) => /** @type {any} */ (document.getElementById(id))

/**
 * Creates an element. Texts are not parsed as HTML. Omits children that are null or false.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...(Node | string | false | null)} children
 */
export function element(tag, attributes, ...children) {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  made.append(...children.filter((each) => each !== null && each !== false))
  return made
}

/**
 * Creates a button. @param {string} className @param {string} label
 * @param {(button: HTMLElement) => unknown} press
 */
export function buttonOf(className, label, press) {
  const made = element('button', { type: 'button', class: className }, label)
  made.addEventListener('click', () => press(made))
  return made
}

export const base = '/api/admin/documentation'

/** @param {string} tag @param {string} id The address of an operation on the reference page. */
export const addressOf = (tag, id) => `${base}#/${encodeURIComponent(tag)}/${id}`

/**
 * @typedef {{ id: string, method: string, path: string, summary: string, isPublic: boolean, parameters: string[], codes: string[] }} OutlineOperation
 * @typedef {{ name: string, slug: string, description: string, operations: OutlineOperation[] }} OutlineTag
 * @typedef {{ tags: OutlineTag[], guides: { name: string, title: string, summary: string }[], version: string }} Outline
 */

/** @type {Promise<Outline> | undefined} */
let outline

/**
 * Loads the list of all operations. Later calls return the same promise.
 * @returns {Promise<Outline>}
 */
export function loadOutline() {
  outline ??= fetch(`${base}/outline.json`).then((response) => response.json())
  return outline
}

/**
 * Copies the text, and shows "Copied" on the button for a second.
 * @param {string} text @param {HTMLElement} button
 */
export async function copy(text, button) {
  await navigator.clipboard.writeText(text)
  const label = [...button.childNodes]
  button.replaceChildren('Copied')
  setTimeout(() => button.replaceChildren(...label), 1200)
}
