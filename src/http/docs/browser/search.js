// @ts-check
// Searches operations, parameters, problem codes and guides.
import { addressOf, base, byId, element, loadOutline } from './dom.js'

/** The maximum number of results that are shown. */
const maxResults = 30

/**
 * @typedef {{ href: string, title: string, detail: string, method: string, fields: { text: string, weight: number, label: string }[] }} Entry
 * @typedef {{ entry: Entry, score: number, reason: string }} Hit
 */

/** @type {Promise<Entry[]> | undefined} */
let entries

function loadEntries() {
  entries ??= loadOutline().then(({ tags, guides }) => [
    ...guides.map(({ name, title, summary }) => ({
      href: `${base}/guides/${name}`,
      title,
      detail: summary,
      method: 'guide',
      fields: [{ text: `${title} ${summary}`.toLowerCase(), weight: 6, label: '' }],
    })),
    ...tags.flatMap((tag) =>
      tag.operations.map((each) => ({
        href: addressOf(tag.name, each.id),
        title: each.summary,
        detail: each.path,
        method: each.method,
        fields: [
          { text: each.id.toLowerCase(), weight: 10, label: '' },
          { text: `${each.summary} ${tag.name}`.toLowerCase(), weight: 8, label: '' },
          { text: `${each.method} ${each.path}`.toLowerCase(), weight: 7, label: '' },
          ...each.parameters.map((name) => ({ text: name.toLowerCase(), weight: 3, label: `parameter ${name}` })),
          ...each.codes.map((code) => ({ text: code, weight: 2, label: `problem code ${code}` })),
        ],
      })),
    ),
  ])
  return entries
}

/**
 * Returns the score of an entry, or null if a word occurs in none of its fields.
 * @param {Entry} entry @param {string[]} words @returns {Hit | null}
 */
function hitOf(entry, words) {
  let score = 0
  let reason = ''
  for (const word of words) {
    let best = 0
    let label = ''
    for (const field of entry.fields) {
      const at = field.text.indexOf(word)
      if (at < 0) continue
      const worth = field.weight * (field.text === word ? 4 : at === 0 ? 2 : 1)
      if (worth > best) [best, label] = [worth, field.label]
    }
    if (best === 0) return null
    score += best
    reason ||= label
  }
  return { entry, score, reason }
}

/** @param {string} query @returns {Promise<Hit[]>} The best matches first. */
export async function find(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return []
  const hits = (await loadEntries()).flatMap((entry) => hitOf(entry, words) ?? [])
  return hits.sort((a, b) => b.score - a.score)
}

/** @param {Hit} hit @param {number} index */
const optionOf = ({ entry, reason }, index) =>
  element(
    'a',
    { role: 'option', id: `result-${index}`, href: entry.href, 'aria-selected': 'false', tabindex: '-1' },
    element('span', { class: `method ${entry.method}` }, entry.method === 'delete' ? 'del' : entry.method),
    element('span', {}, entry.title, element('small', {}, reason ? `${entry.detail} · ${reason}` : entry.detail)),
  )

/** Adds the event listeners of the search field. */
export function startSearch() {
  const [input, results] = [byId('search'), byId('results')]
  let selected = -1
  let latest = 0

  /** @param {boolean} isOpen */
  const open = (isOpen) => {
    results.hidden = !isOpen
    input.setAttribute('aria-expanded', String(isOpen))
    if (!isOpen) input.removeAttribute('aria-activedescendant')
  }
  /** @param {number} index */
  const select = (index) => {
    const options = results.querySelectorAll('[role=option]')
    if (options.length === 0) return
    selected = (index + options.length) % options.length
    for (const [at, option] of options.entries()) option.setAttribute('aria-selected', String(at === selected))
    input.setAttribute('aria-activedescendant', `result-${selected}`)
    options[selected].scrollIntoView({ block: 'nearest' })
  }
  const show = async () => {
    const turn = ++latest
    const hits = await find(input.value)
    if (turn !== latest) return
    const shown = hits.slice(0, maxResults).map(optionOf)
    const more = hits.length - shown.length
    const note = hits.length === 0 ? 'Nothing found.' : more > 0 ? `${more} more; type another word.` : ''
    results.replaceChildren(...shown, ...(note ? [element('p', { role: 'status' }, note)] : []))
    open(input.value.trim() !== '')
    if (shown.length > 0) select(0)
  }

  input.addEventListener('focus', loadEntries)
  input.addEventListener('input', show)
  input.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'ArrowDown') select(selected + 1)
    else if (event.key === 'ArrowUp') select(selected - 1)
    else if (event.key === 'Enter') results.querySelector(`#result-${selected}`)?.click()
    else if (event.key === 'Escape') open(false)
    else return
    event.preventDefault()
  })
  results.addEventListener('click', () => {
    open(false)
    input.blur()
  })
  document.addEventListener('click', (event) => {
    if (!(event.target instanceof Element) || !event.target.closest('.search')) open(false)
  })
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select, dialog')
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping) return
    event.preventDefault()
    input.focus()
    input.select()
  })
}
