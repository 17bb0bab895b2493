// Converts the HTML of an e-mail to its text part: links keep their addresses, pictures their
// descriptions, lists their numbers, and quotations begin with `>`.
import { decoded } from './html.ts'

const paragraphs = new Set('p h1 h2 h3 h4 h5 h6 blockquote pre ul ol dl table figure center hr'.split(' '))
const lines = new Set('div address dt dd tr caption figcaption'.split(' '))

/** The edge of a paragraph, the edge of a line, and a line break, until the last step. */
const edges = { paragraph: '\f', line: '\n', break: '\r' }
/** The edges of a quotation. Texts of e-mails have no private characters. */
const quote = { begins: '\ue000', ends: '\ue001' }

/**
 * Converts a sanitized body to plain text. No parser is needed, because sanitized attributes
 * contain no `>` and only four entities occur.
 */
export function plainText(cleaned: string): string {
  const source = cleaned
    .replaceAll(quote.begins, '')
    .replaceAll(quote.ends, '')
    .replaceAll(/<pre[^>]*>[^<]*/g, (block) => block.replaceAll('\n', '<br />'))
    .replaceAll(/\s+/g, ' ')
  const text = source
    .replaceAll(/<[^>]*>/g, tagReader(source))
    .replaceAll(/ {2,}/g, ' ')
    .replaceAll(/ ?[\n\r\f\ue000\ue001][ \n\r\f\ue000\ue001]*/g, edgeOf)
  return quoted(decoded(text)).trim()
}

/** Returns the line breaks of a gap, between the ends and the beginnings of quotations. */
function edgeOf(gap: string): string {
  const breaks = /\f|\r ?\r/.test(gap) ? '\n\n' : '\n'
  const marks = (mark: string): string => mark.repeat(count(gap, mark))
  return `${marks(quote.ends)}${breaks}${marks(quote.begins)}`
}

/** Returns a function that replaces one tag after another by its text. */
function tagReader(source: string): (tag: string, offset: number) => string {
  const lists: { next: number | null }[] = []
  let link: { href: string; from: number } | null = null
  return (tag, offset) => {
    const [, slash = '', name = ''] = /^<(\/?)([a-z0-9]+)/.exec(tag) ?? []
    const isOpen = slash === ''
    if (name === 'a') {
      const ended = link
      link = isOpen ? { href: attributeOf(tag, 'href') ?? '', from: offset + tag.length } : null
      return isOpen || ended === null ? '' : addressOf(ended.href, source.slice(ended.from, offset))
    }
    if (name === 'img') return attributeOf(tag, 'alt') ?? ''
    if (name === 'br') return edges.break
    if (name === 'td' || name === 'th') return isOpen ? '' : ' '
    if (name === 'ul' || name === 'ol') {
      if (isOpen) lists.push({ next: name === 'ol' ? Number(attributeOf(tag, 'start') ?? 1) || 1 : null })
      else lists.pop()
    }
    if (name === 'li') {
      if (!isOpen) return edges.line
      const list = lists.at(-1)
      const mark = typeof list?.next === 'number' ? `${list.next++}. ` : '- '
      return `${edges.line}${mark}`
    }
    if (name === 'blockquote') return isOpen ? `${edges.paragraph}${quote.begins}` : `${quote.ends}${edges.paragraph}`
    if (paragraphs.has(name)) return edges.paragraph
    return lines.has(name) ? edges.line : ''
  }
}

/** Returns the value of an attribute; undefined when the tag does not have it. */
function attributeOf(tag: string, name: string): string | undefined {
  const at = tag.indexOf(` ${name}="`)
  if (at < 0) return undefined
  const from = at + name.length + 3
  return tag.slice(from, tag.indexOf('"', from))
}

/** Returns the address of a link in brackets, unless its text already says it. */
function addressOf(href: string, inner: string): string {
  const address = href.replace(/^(mailto|tel):/i, '')
  const bare = (text: string): string =>
    text
      .trim()
      .replace(/^https?:\/\//i, '')
      .replace(/\/$/, '')
  const text = inner.replaceAll(/<[^>]*>/g, '')
  return href === '' || bare(text) === bare(address) ? '' : ` (${address})`
}

/** Puts `> ` before each line of a quotation, once for each level. */
function quoted(text: string): string {
  if (!text.includes(quote.begins)) return text
  let depth = 0
  return text
    .split('\n')
    .map((line) => {
      const level = depth + count(line, quote.begins)
      depth = level - count(line, quote.ends)
      const shown = line.replaceAll(quote.begins, '').replaceAll(quote.ends, '').trim()
      return `${'> '.repeat(level)}${shown}`.trimEnd()
    })
    .join('\n')
}

const count = (text: string, char: string): number => text.split(char).length - 1
