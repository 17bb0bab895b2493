// The JavaScript of web forms, as source text for browsers. `ownScript` submits a form on its own
// page and shows the result. `embeddedScript` draws and submits a form on another site, in a shadow
// root that isolates the styles. Both scripts use only browser APIs.
import type { Texts } from '../../texts/texts.ts'
import { formMarkup, formStyle } from './markup.ts'
import type { PublicForm } from './public-form.ts'

/** Returns a value as source text that cannot end the script element. */
const script = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c')

/**
 * The source of `accordForm(form, address)`, which submits the form and shows the result. It sets
 * texts with `textContent`, so no text can contain HTML.
 */
const formScript = ({ say }: Texts): string => `function accordForm(form, address) {
  const texts = ${script({ failed: say('form.failed'), retry: say('form.retry'), busy: say('form.busy') })}
  const button = form.querySelector('button')
  const summary = form.querySelector('.problem')
  const show = (place, sentence) => { place.textContent = sentence; place.hidden = sentence === '' }
  const clear = () => {
    for (const place of form.querySelectorAll('.problem')) show(place, '')
    for (const field of form.querySelectorAll('[aria-invalid]')) {
      field.removeAttribute('aria-invalid')
      field.removeAttribute('aria-describedby')
    }
  }
  const fieldOf = (name) => {
    const parts = name.split('.')
    return [...form.querySelectorAll('[data-field]')].find((each) => each.dataset.field === parts.slice(0, 2).join('.'))
  }
  const inputOf = (place, name) => {
    const [first, ...rest] = name.split('.')
    const wanted = first + rest.map((part) => '[' + part + ']').join('')
    const inputs = [...place.querySelectorAll('input, select, textarea')]
    return inputs.find((each) => each.name === wanted) ?? inputs[0]
  }
  const refuse = ({ errors = {}, status }) => {
    const others = []
    let first
    for (const [name, sentences] of Object.entries(errors)) {
      const place = fieldOf(name)
      const input = place && inputOf(place, name)
      if (!input) { others.push(...sentences); continue }
      const problem = place.querySelector('.problem')
      show(problem, sentences.join(' '))
      input.setAttribute('aria-invalid', 'true')
      input.setAttribute('aria-describedby', problem.id)
      first ??= input
    }
    if (first) first.focus()
    if (!first || others.length > 0) show(summary, others.join(' ') || (status === 429 ? texts.busy : texts.failed))
  }
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (button.disabled) return
    clear()
    button.disabled = true
    try {
      const body = new URLSearchParams(new FormData(form))
      const reply = await fetch(address, { method: 'POST', headers: { accept: 'application/json' }, credentials: 'omit', body })
      const said = await reply.json()
      if (!reply.ok) refuse(said)
      else if (said.redirect) location.assign(said.redirect)
      else {
        const done = document.createElement('p')
        done.className = 'done'
        done.setAttribute('role', 'status')
        done.tabIndex = -1
        done.textContent = said.message
        form.replaceChildren(form.querySelector('h1'), done)
        done.focus()
      }
    } catch {
      show(summary, texts.retry)
    } finally {
      button.disabled = false
    }
  })
}`

export const ownScript = (texts: Texts): string => `${formScript(texts)}
const form = document.querySelector('form')
if (form) accordForm(form, form.action)`

/**
 * Returns the script that draws the form on another site. The script inserts the form after its own
 * script element. If that element is unknown or outside the body, the script appends the form to
 * the body.
 */
export const embeddedScript = (form: PublicForm, address: string, zone: string): string => `(() => {
${formScript(form.texts)}
const me = document.currentScript
const address = me && me.src ? new URL('../${form.formId}', me.src).href : ${JSON.stringify(address)}
const draw = () => {
  const host = document.createElement('div')
  const root = host.attachShadow({ mode: 'open' })
  const style = new CSSStyleSheet()
  style.replaceSync(${JSON.stringify(`:host{all:initial;display:block}\n${formStyle(form)}`)})
  root.adoptedStyleSheets = [style]
  root.innerHTML = ${JSON.stringify(formMarkup(form, zone))}
  const form = root.querySelector('form')
  form.action = address
  if (me && document.body.contains(me)) me.after(host)
  else document.body.append(host)
  accordForm(form, address)
}
if (document.body) draw()
else addEventListener('DOMContentLoaded', draw)
})()
`
