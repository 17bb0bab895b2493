// The HTML pages of a web form: the form, and the result page for browsers without JavaScript. Any
// site may embed these pages in a frame.
import { type Download, download } from '../../kernel/files/download.ts'
import { sourceHash, escapeHtml as text } from '../../kernel/values/format.ts'
import { ownScript } from './browser-script.ts'
import { formMarkup, formStyle } from './markup.ts'
import type { PublicForm } from './public-form.ts'

interface Parts {
  main: string
  script: string
  /** The URL to redirect to. */
  next?: string
}

function pageOf(form: PublicForm, { main, script, next }: Parts): Download {
  const style = `body{margin:0;padding:2rem 1rem;background:${form.colors.background_color ?? '#eef1f4'}}\n${formStyle(form)}`
  const html = `<!doctype html>
<html lang="${form.texts.language}" dir="${form.texts.direction}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">${
    next === undefined ? '' : `<meta http-equiv="refresh" content="0;url=${text(next)}">`
  }<title>${text(form.title)}</title><style>${style}</style></head>
<body><main>${main}</main>${script === '' ? '' : `<script>${script}</script>`}</body>
</html>
`
  const scripts = script === '' ? '' : ` script-src ${sourceHash(script)}; connect-src 'self';`
  return download({
    mediaType: 'text/html; charset=utf-8',
    body: html,
    headers: {
      'cache-control': 'no-cache',
      'content-security-policy': `default-src 'none'; style-src ${sourceHash(style)};${scripts} form-action 'self'; base-uri 'none'; frame-ancestors *`,
    },
  })
}

export const formPage = (form: PublicForm, zone: string): Download =>
  pageOf(form, { main: formMarkup(form, zone), script: ownScript(form.texts) })

/** Returns the result page, or a page that redirects, after a submission without JavaScript. */
export function answerPage(form: PublicForm, { message, redirect }: { message: string; redirect?: string }): Download {
  const link = redirect === undefined ? '' : ` <a href="${text(redirect)}">${text(form.texts.say('form.continue'))}</a>`
  const main = `<div class="accord-form"><h1>${text(form.title)}</h1><p class="done" role="status">${text(message)}${link}</p></div>`
  return pageOf(form, { main, script: '', ...(redirect !== undefined && { next: redirect }) })
}
