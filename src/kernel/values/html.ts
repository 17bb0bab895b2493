// Sanitizes the HTML of sent and received mails, converts it to plain text, and
// rewrites its pictures. An embedded picture is stored as `cid:`; the URL of a remote picture is
// stored in `data-remote`. Displaying a mail therefore loads nothing from other servers.
import { createRequire } from 'node:module'
import type sanitizeHtml from 'sanitize-html'

type Attributes = Record<string, string>

/**
 * The limits for one mail body. `length` keeps the body small enough for a request. The other
 * limits bound the time for which sanitizing blocks the event loop.
 */
const most = { length: 1_000_000, elements: 50_000, depth: 250, attributes: 50_000, links: 10_000, pieces: 100_000 }

/**
 * The limits for `style` attributes: their number, their total length, and the length of each. Each
 * style is parsed separately, which is the most expensive step. A style longer than `each` is
 * dropped.
 */
const maxStyles = { count: 10_000, length: 300_000, each: 4000 }

export const tooMuch = `Must have at most ${most.elements} elements, ${most.depth} levels deep, ${maxStyles.count} of them with a style, and a million characters once it is cleaned.`

class TooMuch extends Error {}

const tags =
  'a abbr address b bdi bdo blockquote br caption center cite code col colgroup dd del dfn div dl dt em figcaption figure font h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strike strong sub sup table tbody td tfoot th thead tr tt u ul var wbr'.split(
    ' ',
  )
/**
 * Elements that are dropped together with their content. Other disallowed elements lose only their
 * tags.
 */
const dropped =
  'applet audio canvas iframe math noembed noframes noscript object option plaintext script select style svg template textarea title video xmp'.split(
    ' ',
  )

/**
 * The allowed values of style properties. They contain no quotes, slashes or colons, and no
 * functions except color functions. Such a value cannot load anything or move content outside of
 * the mail.
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
 * Returns the attributes that store the source of a picture. `contentIdOf` converts a link from a
 * reply of this server back to the content id of an embedded picture.
 */
function place(sent: string, contentIdOf: ContentIdOf): Attributes {
  const src = sent.trim().replace(/^\/\//, 'https://')
  const contentId = /^cid:(.+)$/i.exec(src)?.[1] ?? contentIdOf(src)
  if (contentId !== undefined) return { src: `cid:${contentId}` }
  if (/^data:image\/(png|jpeg|gif|webp);base64,[a-z0-9+/=\s]+$/i.test(src)) return { src }
  return /^https?:\/\//i.test(src) && URL.canParse(src) ? { 'data-remote': src } : {}
}

/**
 * Returns whether a style may be stored. It must be short and must not contain blocks, at-rules or
 * escapes.
 */
const isStyle = (style: string): boolean => style.length <= maxStyles.each && !/[{}\\@]/.test(style)

const only = (attributes: Attributes, names: readonly string[]): Attributes =>
  Object.fromEntries(names.flatMap((name) => (attributes[name] ? [[name, attributes[name]]] : [])))

/**
 * Returns the content id of an embedded picture from its link in a reply of this server; undefined
 * for any other link.
 */
export type ContentIdOf = (src: string) => string | undefined

/**
 * Returns the sanitized body of a mail. Sanitizing the result again changes nothing. Returns null
 * when the body exceeds a limit.
 */
export function clean(html: string, contentIdOf: ContentIdOf = () => undefined): string | null {
  const once = cleanOnce(html, contentIdOf)
  if (once === null || !once.lost) return once?.cleaned ?? null
  // Dropping a tag can leave an invalid nesting: `<p><x><p>` becomes `<p><p>`. A second pass
  // repairs the nesting.
  return cleanOnce(once.cleaned, contentIdOf)?.cleaned ?? null
}

const keptTags = new Set(tags)

/** Loads sanitize-html on first use, because the module is large and few requests need it. */
const load = createRequire(import.meta.url)
let loaded: typeof sanitizeHtml | undefined
function sanitizer(): typeof sanitizeHtml {
  loaded ??= load('sanitize-html') as typeof sanitizeHtml
  return loaded
}

/**
 * Sanitizes a body in one pass. `lost` tells whether the tags of an element were dropped. Returns
 * null when the body exceeds a limit.
 */
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
      // The parser splits a text at each `<` into pieces and escapes each piece, so the number of
      // pieces is limited.
      textFilter: (text) => {
        length += text.length
        if (length > most.length || ++found.pieces > most.pieces) throw new TooMuch()
        return text
      },
      // This function is called for every opening tag. It limits the depth, because the time of the
      // parser grows with the square of the depth.
      onOpenTag: (tag, attributes) => {
        lost ||= !keptTags.has(tag)
        for (const _name in attributes) if (++found.attributes > most.attributes) throw new TooMuch()
        // Parsing the URL is the most expensive part of an element, so the number of links is
        // limited.
        if ((attributes.href ?? attributes.src) !== undefined && ++found.links > most.links) throw new TooMuch()
        if (++elements > most.elements || ++depth > most.depth) throw new TooMuch()
        // Refuses an overlong body early: the result is at least as long as its text and tags
        // together.
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

const entities: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"' }
/** Returns a sanitized text with its entities replaced. */
export const decoded = (text: string): string =>
  text.replaceAll(/&(?:amp|lt|gt|quot);/g, (entity) => entities[entity] ?? entity)

/**
 * Returns a stored body for display, with links to its embedded pictures. Pictures for which
 * `urlOf` returns undefined stay unchanged.
 */
export const withPictures = (cleaned: string, urlOf: (contentId: string) => string | undefined): string =>
  cleaned.replaceAll(/<img src="cid:([^">]+)"/g, (tag, contentId: string) => {
    const url = urlOf(decoded(contentId))
    return url === undefined ? tag : `<img src="${url.replaceAll('&', '&amp;')}"`
  })

/**
 * Returns a stored body for sending, in which remote pictures have a `src` again, so that the
 * recipient's mail program loads them. `placeOf` may replace the URL.
 */
export const withRemotes = (cleaned: string, placeOf: (url: string) => string): string =>
  cleaned.replaceAll(
    /<img data-remote="([^">]+)"/g,
    (_tag, url: string) => `<img src="${placeOf(decoded(url)).replaceAll('&', '&amp;').replaceAll('"', '&quot;')}"`,
  )
