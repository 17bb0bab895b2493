// @ts-check
// "Try it out": loads Swagger UI at its first use, and shows its form for an operation.
import { base, element } from './dom.js'
import { startSwaggerUi } from './swagger.js'

/** @typedef {import('./tag-documents.js').Operation} Operation */

/** Adds an element that loads a file, and resolves after the load. @param {HTMLElement} added */
function loaded(added) {
  document.head.append(added)
  return new Promise((resolve, reject) => {
    added.addEventListener('load', resolve)
    added.addEventListener('error', () => {
      added.remove()
      reject(new Error('Swagger UI could not be loaded.'))
    })
  })
}

/** @type {Promise<unknown> | undefined} */
let loading

/**
 * Loads Swagger UI. A later call repeats a failed load. Own modules are imported by the page, because
 * browsers do not repeat a failed `import()`.
 */
function loadSwaggerUi() {
  const style = new URL('try-out.css', import.meta.url).pathname
  loading ??= Promise.all([
    loaded(element('link', { rel: 'stylesheet', href: style })),
    loaded(element('script', { src: `${base}/static/swagger-ui-bundle.js?v=SWAGGER_UI_VERSION` })),
  ])
  loading.catch(() => {
    loading = undefined
  })
  return loading
}

/**
 * Shows the form, or hides it and keeps what was typed.
 * @param {{ found: Operation, button: HTMLElement, inputs: HTMLElement, form: HTMLElement }} parts
 * `inputs` is the list of parameters, which the form replaces.
 */
export async function openTryOut({ found, button, inputs, form }) {
  if (button.getAttribute('aria-busy') === 'true') return
  /** @param {boolean} isOpen */
  const show = (isOpen) => {
    form.hidden = !isOpen
    inputs.hidden = isOpen
    button.textContent = isOpen ? 'Cancel' : 'Try it out'
    button.setAttribute('aria-expanded', String(isOpen))
  }
  if (form.querySelector('.swagger-ui')) return show(form.hidden === true)
  button.setAttribute('aria-busy', 'true')
  button.textContent = 'Loading …'
  try {
    await loadSwaggerUi()
    const place = element('div', {})
    form.replaceChildren(place)
    startSwaggerUi(place, found)
    show(true)
  } catch (error) {
    const reason = navigator.onLine ? (error instanceof Error ? error.message : '') : 'This computer is offline.'
    form.replaceChildren(element('p', { role: 'alert', class: 'failed' }, `The form could not be loaded. ${reason}`))
    button.textContent = 'Try it out'
  }
  button.removeAttribute('aria-busy')
}
