// HTML from outside, made harmless before it is stored (DOMAIN 14.5, DESIGN 9). The one place that knows the sanitiser.
import sanitize from 'sanitize-html'

const allowed = sanitize.defaults.allowedTags.concat(['img', 'ins', 'del', 'u', 'center', 'font'])

/** Text markup without scripts, styles from outside, event handlers, forms or frames. */
export const cleanHtml = (html: string): string =>
  sanitize(html, {
    allowedTags: allowed,
    allowedAttributes: {
      a: ['href', 'title', 'target', 'rel'],
      img: ['src', 'alt', 'title', 'width', 'height'],
      '*': ['align', 'dir', 'lang'],
    },
    allowedSchemes: ['http', 'https', 'mailto', 'tel'],
    allowedSchemesAppliedToAttributes: ['href', 'src'],
    allowProtocolRelative: false,
  })
