// @ts-check
// Searches operations, parameters, guides and their sections, problem codes and events.
import { addressOf, base, byId, element, loadOutline } from './dom.js'

/** The maximum number of results that are shown. */
const maxResults = 30

/**
 * A text of an entry. `isProse` texts match at the beginning of their words only.
 * @typedef {{ text: string, weight: number, label: string, isProse?: boolean }} Field
 * @typedef {{ href: string, title: string, detail: string, method: string, fields: Field[] }} Entry
 * @typedef {{ entry: Entry, score: number, reason: string, missing: number }} Hit
 * @typedef {{ guides: { name: string, title: string, summary: string, sections: { id: string, title: string, words: string }[] }[], codes: { code: string, status: number, meaning: string, words: string }[], events: string[], descriptions: Record<string, string>, synonyms: Record<string, string>, empty: string[] }} Index
 * @typedef {{ entries: Entry[], guides: Entry[], synonyms: Map<string, string[]>, empty: Set<string>, words: Set<string> }} Loaded
 */

/** @type {Promise<Loaded> | undefined} */
let loaded

/** @param {string} text @param {number} weight @returns {Field} */
const named = (text, weight) => ({ text: text.toLowerCase(), weight, label: '' })

/** @param {string} words @param {number} weight @returns {Field} */
const prose = (words, weight) => ({ text: words.toLowerCase(), weight, label: '', isProse: true })

/** @param {Index} index @returns {Entry[]} */
const guidesOf = ({ guides }) =>
  guides.map(({ name, title, summary, sections }) => ({
    href: `${base}/guides/${name}`,
    title,
    detail: summary,
    method: 'guide',
    fields: [named(title, 12), prose(summary, 6), prose(sections[0]?.words ?? '', 2)],
  }))

/** @param {Index} index @returns {Entry[]} */
const sectionsOf = ({ guides }) =>
  guides.flatMap(({ name, title, sections }) =>
    sections.slice(1).map((section) => ({
      href: `${base}/guides/${name}#${section.id}`,
      title: section.title,
      detail: title,
      method: 'guide',
      fields: [named(section.title, 8), prose(title, 4), prose(section.words, 1.5)],
    })),
  )

/** @param {Index} index @returns {Entry[]} */
const codesOf = ({ codes, events }) => [
  ...codes.map(({ code, status, meaning, words }) => ({
    href: `${base}/errors#${code}`,
    title: code,
    detail: `${status} · ${meaning}`,
    method: 'code',
    fields: [
      named(code, 9),
      named(String(status), 9),
      prose(code.replaceAll('_', ' '), 5),
      prose(meaning, 3),
      prose(words, 1),
    ],
  })),
  ...events.map((name) => ({
    href: `${base}/guides/webhooks#event-${name}`,
    title: name,
    detail: 'Event of webhooks and of the feed',
    method: 'event',
    fields: [named(name, 4)],
  })),
]

async function load() {
  const [{ tags }, index] = await Promise.all([
    loadOutline(),
    fetch(`${base}/search.json`).then((response) => /** @type {Promise<Index>} */ (response.json())),
  ])
  const guides = guidesOf(index)
  const frequency = new Map()
  for (const name of tags.flatMap((tag) => tag.operations.flatMap(({ parameters }) => parameters)))
    frequency.set(name, (frequency.get(name) ?? 0) + 1)
  /** @type {Entry[]} */
  const operations = tags.flatMap((tag) =>
    tag.operations.map((each) => ({
      href: addressOf(tag.name, each.id),
      title: each.summary,
      detail: each.path,
      method: each.method,
      fields: [
        named(each.id, 10),
        named(each.summary, 8),
        prose(tag.name, 6),
        named(`${each.method} ${each.path}`, 7),
        prose(index.descriptions[each.id] ?? '', 1),
        // A parameter of many operations says little about each of them.
        ...each.parameters.map((name) => ({
          text: name.toLowerCase(),
          weight: 3 / Math.sqrt(frequency.get(name)),
          label: `parameter ${name}`,
        })),
        ...each.codes.map((code) => ({ text: code, weight: 2, label: `problem code ${code}` })),
      ],
    })),
  )
  const entries = [...guides, ...sectionsOf(index), ...operations, ...codesOf(index)]
  const words = new Set(
    entries.flatMap(({ title, fields }) =>
      wordsOf([title, ...fields.filter(({ isProse }) => isProse).map(({ text }) => text)].join(' ')),
    ),
  )
  const synonyms = new Map(Object.entries(index.synonyms).map(([word, meant]) => [word, meant.split(' ')]))
  for (const word of synonyms.keys()) words.add(word)
  return { entries, guides, synonyms, empty: new Set(index.empty), words }
}

function loadEntries() {
  loaded ??= load().catch((cause) => {
    loaded = undefined
    throw cause
  })
  return loaded
}

/** @param {string} text @returns {string[]} */
const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []

/** @param {string | undefined} character */
const isLetter = (character) => character !== undefined && /[\p{L}\p{N}]/u.test(character)

/**
 * Returns how well a word fits a field: 4 for the whole text, 2 for its beginning, 1 for the
 * beginning of a word, less inside a word, 0 for nothing.
 * @param {Field} field @param {string} word
 */
function fitOf({ text, isProse }, word) {
  const first = text.indexOf(word)
  if (first < 0) return 0
  if (first === 0 && !isProse) return text === word ? 4 : 2
  for (let at = first; at >= 0; at = text.indexOf(word, at + 1)) {
    if (at > 0 && isLetter(text[at - 1])) continue
    return isLetter(text[at + word.length]) ? 0.8 : 1
  }
  return isProse ? 0 : 0.4
}

/** What a synonym is worth beside the word itself. */
const synonymShare = 0.5

/** What a second name with the word is worth beside the best field. */
const secondShare = 0.2

/** If so few hits have all words, those that lack some are shown, too. */
const fewHits = 8

/** @param {Field} field @param {string} word @param {boolean} isSynonym */
function worthOf(field, word, isSynonym) {
  const fit = fitOf(field, word)
  // A synonym inside of another word says nothing, and parameters have exact names.
  if (fit === 0 || (isSynonym && (fit < 0.8 || field.label !== ''))) return 0
  return field.weight * Math.min(fit, field.label === '' ? 4 : 2) * (isSynonym ? synonymShare : 1)
}

/**
 * Returns the score of an entry. A word that occurs in none of its fields counts as missing.
 * @param {Entry} entry @param {string[][]} words Each word with its synonyms. @returns {Hit}
 */
function hitOf(entry, words) {
  let score = 0
  let reason = ''
  let missing = 0
  for (const alternatives of words) {
    let best = 0
    let label = ''
    /** @type {number[]} */
    const names = []
    for (const field of entry.fields) {
      const worth = Math.max(...alternatives.map((word, rank) => worthOf(field, word, rank > 0)))
      if (worth > best) [best, label] = [worth, field.label]
      if (!field.isProse) names.push(worth)
    }
    if (best === 0) missing++
    const [, second = 0] = names.sort((a, b) => b - a)
    score += best + second * secondShare
    reason ||= label
  }
  const phrase = words.map(([word]) => word).join(' ')
  if (words.length > 1 && entry.title.toLowerCase().includes(phrase)) score *= 2
  return { entry, score, reason, missing }
}

/**
 * Returns the most similar known word: one letter more, less or different, or two exchanged.
 * @param {string} word @param {Iterable<string>} known
 */
function similar(word, known) {
  for (const other of known) {
    if (Math.abs(other.length - word.length) > 1 || other === word) continue
    let [start, end] = [0, 0]
    while (start < word.length && word[start] === other[start]) start++
    const most = Math.min(word.length, other.length) - start
    while (end < most && word[word.length - 1 - end] === other[other.length - 1 - end]) end++
    const [left, right] = [word.slice(start, word.length - end), other.slice(start, other.length - end)]
    if (left.length <= 1 && right.length <= 1) return other
    if (left.length === 2 && right.length === 2 && left[0] === right[1] && left[1] === right[0]) return other
  }
  return undefined
}

/**
 * Unites two words that are known as one, such as `time zone` and `api key`.
 * @param {string[]} words @param {Map<string, string[]>} known @returns {string[]}
 */
function joined(words, known) {
  const [first, second, ...others] = words
  if (first === undefined || second === undefined) return words
  if (known.has(first + second)) return [`${first} ${second}`, ...joined(others, known)]
  return [first, ...joined([second, ...others], known)]
}

/**
 * Returns the best matches first. `instead` names the words that replace misspelled ones.
 * @param {string} query @returns {Promise<{ hits: Hit[], instead: string[], guides: Entry[] }>}
 */
export async function find(query) {
  const { entries, guides, synonyms, empty, words: known } = await loadEntries()
  const all = joined(
    query
      .toLowerCase()
      .split(/[\s?!,;]+/)
      .filter(Boolean),
    synonyms,
  )
  const meaningful = all.filter((word) => !empty.has(word))
  const words = meaningful.length > 0 ? meaningful : all
  if (words.length === 0) return { hits: [], instead: [], guides }
  /** @param {string[]} words */
  const search = (words) => {
    const found = entries.map((entry) =>
      hitOf(
        entry,
        words.map((word) => {
          const together = word.replace(' ', '')
          return [word, ...(together === word ? [] : [together]), ...(synonyms.get(together) ?? [])]
        }),
      ),
    )
    const complete = found.filter(({ missing }) => missing === 0)
    const hits =
      complete.length > fewHits
        ? complete
        : found.filter(({ missing }) => missing <= words.length / 2 && missing < words.length)
    /** @param {Hit} hit */
    const rank = ({ score, missing }) => score * (1 - missing / words.length)
    return hits.sort((a, b) => rank(b) - rank(a))
  }
  const hits = search(words)
  if (hits.some(({ missing }) => missing === 0)) return { hits, instead: [], guides }
  /** @type {string[]} */
  const instead = []
  const mended = words.map((word) => {
    if (word.length < 4 || known.has(word)) return word
    const other = similar(word, known) ?? similar(word.replace(/s$/, ''), known)
    if (other !== undefined) instead.push(other)
    return other ?? word
  })
  return instead.length > 0 ? { hits: search(mended), instead, guides } : { hits, instead, guides }
}

/** @param {Pick<Hit, 'entry' | 'reason'>} hit @param {number} index */
const optionOf = ({ entry, reason }, index) =>
  element(
    'a',
    { role: 'option', id: `result-${index}`, href: entry.href, 'aria-selected': 'false', tabindex: '-1' },
    element('span', { class: `method ${entry.method}` }, entry.method === 'delete' ? 'del' : entry.method),
    element('span', {}, entry.title, element('small', {}, reason ? `${entry.detail} · ${reason}` : entry.detail)),
  )

/** Adds the event listeners of the search field. */
export function startSearch() {
  const [input, results, options] = [byId('search'), byId('results'), byId('options')]
  const notes = results.querySelectorAll('p')
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
    const all = options.querySelectorAll('[role=option]')
    if (all.length === 0) return
    selected = (index + all.length) % all.length
    for (const [at, option] of all.entries()) option.setAttribute('aria-selected', String(at === selected))
    input.setAttribute('aria-activedescendant', `result-${selected}`)
    all[selected].scrollIntoView({ block: 'nearest' })
  }
  const show = async () => {
    const turn = ++latest
    const query = input.value.trim()
    const { hits, instead, guides } = await find(query)
    if (turn !== latest) return
    const offered = hits.length > 0 ? hits : guides.map((entry) => ({ entry, reason: '' }))
    const shown = offered.slice(0, maxResults).map(optionOf)
    const more = hits.length - shown.length
    const before =
      hits.length === 0
        ? `Nothing found for “${query}”. The guides:`
        : instead.length > 0
          ? `Results for “${instead.join(' ')}”:`
          : ''
    const after = more > 0 ? `${more} more; type another word.` : ''
    for (const [at, text] of [before, after].entries()) {
      notes[at].textContent = text
      notes[at].hidden = text === ''
    }
    options.replaceChildren(...shown)
    open(query !== '')
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
