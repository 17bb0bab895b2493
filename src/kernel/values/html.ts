// The HTML of mails, ours and others': sanitizing (DOMAIN 14.5), plain text, and pictures. A
// picture of the mail itself is stored as `cid:`, a remote one in `data-remote`, so that displaying
// a mail fetches nothing.
import { createRequire } from 'node:module'
import type sanitizeHtml from 'sanitize-html'

type Attributes = Record<string, string>

/**
 * A body of a million characters still fits into a request. Sanitizing runs in one piece, so the
 * costly parts are counted and bounded.
 */
const most = { length: 1_000_000, elements: 50_000, depth: 250, attributes: 50_000, links: 10_000, pieces: 100_000 }

/**
 * Each style goes through a separate parser, the most expensive step. A longer style is dropped.
 */
const maxStyles = { count: 10_000, length: 300_000, each: 4000 }

export const tooMuch = `Must have at most ${most.elements} elements, ${most.depth} levels deep, ${maxStyles.count} of them with a style, and a million characters once it is cleaned.`

class TooMuch extends Error {}

const tags =
  'a abbr address b bdi bdo blockquote br caption center cite code col colgroup dd del dfn div dl dt em figcaption figure font h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strike strong sub sup table tbody td tfoot th thead tr tt u ul var wbr'.split(
    ' ',
  )
/** Elements that are dropped with their content. Other disallowed tags are dropped alone. */
const dropped =
  'applet audio canvas iframe math noembed noframes noscript object option plaintext script select style svg template textarea title video xmp'.split(
    ' ',
  )

/**
 * No quotes, slashes or colons, and no function but color functions: nothing that could fetch or
 * leave the mail.
 */
const plain = [/^(?!.*-\d)(?:[\w\s#.,%!-]|\b(?:rgb|hsl)a?\([\d\s.,%]{1,40}\)){1,150}$/i]
const sides = (name: string, suffix = ''): string[] =>
  [name, ...['top', 'right', 'bottom', 'left'].map((side) => `${name}-${side}`)].map((each) => each + suffix)
const properties = [
  ...'color background-color font-size font-style font-weight font-variant line-height letter-spacing text-align text-decoration text-indent text-transform vertical-align white-space width height max-width min-width border-collapse border-spacing border-radius border-width border-style border-color list-style-type display float clear'.split(
    ' ',
  ),
  ...sides('margin'),
  ...sides('padding'),
  ...sides('border'),
]
const styles = {
  ...Object.fromEntries(properties.map((name) => [name, plain])),
  'font-family': [/^[\w\s,'"-]{1,200}$/],
}

const pictureAttributes = ['alt', 'width', 'height', 'align', 'style', 'title', 'dir', 'lang']

/**
 * The source of a picture in its stored form. `contentIdOf` maps the links of our replies back to
 * the mail's own pictures.
 */
function place(sent: string, contentIdOf: ContentIdOf): Attributes {
  const src = sent.trim().replace(/^\/\//, 'https://')
  const contentId = /^cid:(.+)$/i.exec(src)?.[1] ?? contentIdOf(src)
  if (contentId !== undefined) return { src: `cid:${contentId}` }
  if (/^data:image\/(png|jpeg|gif|webp);base64,[a-z0-9+/=\s]+$/i.test(src)) return { src }
  return /^https?:\/\//i.test(src) && URL.canParse(src) ? { 'data-remote': src } : {}
}

/**
 * Returns whether a style may be stored: it is short and contains no blocks, at-rules or escapes.
 */
const isStyle = (style: string): boolean => style.length <= maxStyles.each && !/[{}\\@]/.test(style)

const only = (attributes: Attributes, names: readonly string[]): Attributes =>
  Object.fromEntries(names.flatMap((name) => (attributes[name] ? [[name, attributes[name]]] : [])))

/** The content id of one of the mail's own pictures, from the link in a reply. */
export type ContentIdOf = (src: string) => string | undefined

/**
 * Returns the sanitized body; sanitizing it again changes nothing. Null for a body that is too
 * large or too costly.
 */
export function clean(html: string, contentIdOf: ContentIdOf = () => undefined): string | null {
  const once = cleanOnce(html, contentIdOf)
  if (once === null || !once.lost) return once?.cleaned ?? null
  // `<p><x><p>`: dropping `<x>` leaves two elements nested that must not be, so a second pass
  // repairs them.
  return cleanOnce(once.cleaned, contentIdOf)?.cleaned ?? null
}

const keptTags = new Set(tags)

/** Loaded with the first text: the module is large, and few requests need it. */
const load = createRequire(import.meta.url)
let loaded: typeof sanitizeHtml | undefined
function sanitizer(): typeof sanitizeHtml {
  loaded ??= load('sanitize-html') as typeof sanitizeHtml
  return loaded
}

/** Sanitizes once. `lost`: whether elements with others inside were dropped. */
function cleanOnce(html: string, contentIdOf: ContentIdOf): { cleaned: string; lost: boolean } | null {
  let elements = 0
  let depth = 0
  let lost = false
  let length = 0
  const found = { attributes: 0, links: 0, pieces: 0 }
  const styled = { count: 0, length: 0 }
  try {
    const cleaned = sanitizer()(html, {
      allowedTags: tags,
      nonTextTags: dropped,
      allowedAttributes: {
        '*': ['style', 'title', 'dir', 'lang', 'align'],
        a: ['href', 'rel', 'target'],
        font: ['color', 'face', 'size'],
        img: ['src', 'data-remote', 'alt', 'width', 'height'],
        ol: ['start', 'type'],
        table: ['width', 'height', 'border', 'cellpadding', 'cellspacing', 'bgcolor'],
        ...Object.fromEntries(['td', 'th'].map((tag) => [tag, cellAttributes])),
        ...Object.fromEntries(['tr', 'col', 'colgroup'].map((tag) => [tag, ['width', 'valign', 'bgcolor', 'span']])),
      },
      allowedStyles: { '*': styles },
      allowedSchemes: ['http', 'https', 'mailto', 'tel'],
      allowedSchemesByTag: { img: ['cid', 'data'] },
      allowProtocolRelative: false,
      transformTags: {
        '*': (tagName, { style, ...rest }) => {
          if (style === undefined || !keptTags.has(tagName) || !isStyle(style)) return { tagName, attribs: rest }
          styled.length += style.length
          if (++styled.count > maxStyles.count || styled.length > maxStyles.length) throw new TooMuch()
          return { tagName, attribs: { ...rest, style } }
        },
        img: (_tag, { src = '', 'data-remote': remote = '', ...rest }) => ({
          tagName: 'img',
          attribs: { ...place(src || remote, contentIdOf), ...only(rest, pictureAttributes) },
        }),
        a: (_tag, { href = '', rel: _rel, target: _target, ...rest }) => ({
          tagName: 'a',
          attribs: /^\s*(https?:\/\/|mailto:|tel:)/i.test(href)
            ? { href: href.trim(), ...rest, rel: 'noopener noreferrer', target: '_blank' }
            : rest,
        }),
      },
      // The parser splits a text with many `<` into many pieces, each of which is escaped.
      textFilter: (text) => {
        length += text.length
        if (length > most.length || ++found.pieces > most.pieces) throw new TooMuch()
        return text
      },
      // The parser's time is quadratic in the depth; this hook sees every element as it opens.
      onOpenTag: (tag, attributes) => {
        lost ||= !keptTags.has(tag)
        for (const _name in attributes) if (++found.attributes > most.attributes) throw new TooMuch()
        // Parsing the URL is the most expensive part of an element.
        if ((attributes.href ?? attributes.src) !== undefined && ++found.links > most.links) throw new TooMuch()
        if (++elements > most.elements || ++depth > most.depth) throw new TooMuch()
        // The result is at least as long as its text and tags, so a too long body is refused early.
        if (keptTags.has(tag)) length += tag.length + 3
        if (length > most.length) throw new TooMuch()
      },
      onCloseTag: () => {
        depth--
      },
    })
    return cleaned.length > most.length ? null : { cleaned, lost }
  } catch (error) {
    if (error instanceof TooMuch) return null
    throw error
  }
}

const cellAttributes = ['colspan', 'rowspan', 'width', 'height', 'valign', 'bgcolor']

const paragraphs = /<\/?(?:p|h[1-6]|blockquote|pre|ul|ol|dl|table|figure|center)(?: [^>]*)?>|<hr[^>]*>/g
const lines = /<\/?(?:div|address|dt|dd|li|tr|caption|figcaption)(?: [^>]*)?>/g
const entities: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"' }
const decoded = (text: string): string =>
  text.replaceAll(/&(?:amp|lt|gt|quot);/g, (entity) => entities[entity] ?? entity)

/**
 * A sanitized body as plain text. Sanitizing leaves no `>` in attributes and only four entities, so
 * no parser is needed. Until the last step `\f` stands for the edge of a paragraph, `\n` for that
 * of a line, `\r` for a line break.
 */
export const plainText = (cleaned: string): string =>
  decoded(
    cleaned
      .replaceAll(/<pre[^>]*>[^<]*/g, (block) => block.replaceAll('\n', '<br />'))
      .replaceAll(/\s+/g, ' ')
      .replaceAll(/<li(?: [^>]*)?>/g, '<li>- ')
      .replaceAll(/<\/t[dh]>/g, ' ')
      .replaceAll(paragraphs, '\f')
      .replaceAll(lines, '\n')
      .replaceAll(/<br[^>]*>/g, '\r')
      .replaceAll(/<[^>]*>/g, '')
      .replaceAll(/ {2,}/g, ' ')
      .replaceAll(/ ?[\n\r\f][ \n\r\f]*/g, (gap) => (/\f|\r ?\r/.test(gap) ? '\n\n' : '\n')),
  ).trim()

/**
 * A stored body for display: its own pictures become working links; unknown ones stay as they are.
 */
export const withPictures = (cleaned: string, urlOf: (contentId: string) => string | undefined): string =>
  cleaned.replaceAll(/<img src="cid:([^">]+)"/g, (tag, contentId: string) => {
    const url = urlOf(decoded(contentId))
    return url === undefined ? tag : `<img src="${url.replaceAll('&', '&amp;')}"`
  })

/**
 * A stored body for sending: the recipient's program fetches remote pictures; `placeOf` may replace
 * their address.
 */
export const withRemotes = (cleaned: string, placeOf: (url: string) => string): string =>
  cleaned.replaceAll(
    /<img data-remote="([^">]+)"/g,
    (_tag, url: string) => `<img src="${placeOf(decoded(url)).replaceAll('&', '&amp;').replaceAll('"', '&quot;')}"`,
  )
