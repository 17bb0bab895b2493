// The HTML of mails, ours and other people's: what is kept of it (DOMAIN 14.5), what it says as plain text, and its pictures.
// A picture of the mail itself is stored as `cid:`, one from elsewhere in `data-remote`, so that showing a mail fetches nothing.
import { createRequire } from 'node:module'
import type sanitizeHtml from 'sanitize-html'

type Attributes = Record<string, string>

/** A body of a million characters still fits into a request. All of it is cleaned at a stretch, so what takes long is counted. */
const most = { length: 1_000_000, elements: 50_000, depth: 250, attributes: 50_000, links: 10_000, pieces: 100_000 }

/** Each style goes through a parser of its own, and that takes longer than all else. One that is longer is lost. */
const maxStyles = { count: 10_000, length: 300_000, each: 4000 }

export const tooMuch = `Must have at most ${most.elements} elements, ${most.depth} levels deep, ${maxStyles.count} of them with a style, and a million characters once it is cleaned.`

class TooMuch extends Error {}

const tags =
  'a abbr address b bdi bdo blockquote br caption center cite code col colgroup dd del dfn div dl dt em figcaption figure font h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strike strong sub sup table tbody td tfoot th thead tr tt u ul var wbr'.split(
    ' ',
  )
/** What is in these is no text of the mail. For all other tags that are not kept, what is in them stays. */
const dropped =
  'applet audio canvas iframe math noembed noframes noscript object option plaintext script select style svg template textarea title video xmp'.split(
    ' ',
  )

/** No quotes, slashes or colons and no function but a colour's: nothing that could fetch, or step out of the mail. */
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

/** Where a picture is, in the one form that is stored. `contentIdOf` knows the links that replies give to the mail's own. */
function place(sent: string, contentIdOf: ContentIdOf): Attributes {
  const src = sent.trim().replace(/^\/\//, 'https://')
  const contentId = /^cid:(.+)$/i.exec(src)?.[1] ?? contentIdOf(src)
  if (contentId !== undefined) return { src: `cid:${contentId}` }
  if (/^data:image\/(png|jpeg|gif|webp);base64,[a-z0-9+/=\s]+$/i.test(src)) return { src }
  return /^https?:\/\//i.test(src) && URL.canParse(src) ? { 'data-remote': src } : {}
}

/** Blocks, rules and escapes are in no style that is kept. */
const isStyle = (style: string): boolean => style.length <= maxStyles.each && !/[{}\\@]/.test(style)

const only = (attributes: Attributes, names: readonly string[]): Attributes =>
  Object.fromEntries(names.flatMap((name) => (attributes[name] ? [[name, attributes[name]]] : [])))

/** The content id of one of the mail's own pictures, from the link a reply gave to it. */
export type ContentIdOf = (src: string) => string | undefined

/** What is kept of a body: the same again when it is cleaned again. Null for more than can be shown, and be cleaned in time. */
export function clean(html: string, contentIdOf: ContentIdOf = () => undefined): string | null {
  const once = cleanOnce(html, contentIdOf)
  if (once === null || !once.lost) return once?.cleaned ?? null
  // `<p><x><p>`: an element that is lost was between two that cannot be in each other, and now are.
  return cleanOnce(once.cleaned, contentIdOf)?.cleaned ?? null
}

const keptTags = new Set(tags)

/** Loaded by the first text: large, and few requests have one. */
const load = createRequire(import.meta.url)
let loaded: typeof sanitizeHtml | undefined
function sanitizer(): typeof sanitizeHtml {
  loaded ??= load('sanitize-html') as typeof sanitizeHtml
  return loaded
}

/** `lost`: elements were taken away from around others. */
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
      // A text of nothing but `<` comes in as many pieces, each to be escaped.
      textFilter: (text) => {
        length += text.length
        if (length > most.length || ++found.pieces > most.pieces) throw new TooMuch()
        return text
      },
      // The parser's time grows with the square of the depth; these tell of every element as it comes.
      onOpenTag: (tag, attributes) => {
        lost ||= !keptTags.has(tag)
        for (const _name in attributes) if (++found.attributes > most.attributes) throw new TooMuch()
        // An address is parsed, which takes longer than all else about an element.
        if ((attributes.href ?? attributes.src) !== undefined && ++found.links > most.links) throw new TooMuch()
        if (++elements > most.elements || ++depth > most.depth) throw new TooMuch()
        // What is kept is longer than its text and its tags, so there is no need to wait for the end.
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
 * A cleaned body as plain text. Cleaning leaves no `>` in attributes and four entities, so nothing has to be parsed. Until the
 * end `\f` stands for the edge of a paragraph, `\n` for that of a line, `\r` for a line break.
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

/** A stored body as it is shown: its own pictures as links that work; those nobody knows stay as they are. */
export const withPictures = (cleaned: string, urlOf: (contentId: string) => string | undefined): string =>
  cleaned.replaceAll(/<img src="cid:([^">]+)"/g, (tag, contentId: string) => {
    const url = urlOf(decoded(contentId))
    return url === undefined ? tag : `<img src="${url.replaceAll('&', '&amp;')}"`
  })

/** A stored body as it is sent: pictures from elsewhere are fetched by whoever opens it; `placeOf` may know a better place. */
export const withRemotes = (cleaned: string, placeOf: (url: string) => string): string =>
  cleaned.replaceAll(
    /<img data-remote="([^">]+)"/g,
    (_tag, url: string) => `<img src="${placeOf(decoded(url)).replaceAll('&', '&amp;').replaceAll('"', '&quot;')}"`,
  )
