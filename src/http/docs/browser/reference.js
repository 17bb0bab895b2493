// @ts-check
// The entry of the reference page.
import { base, byId, element, loadOutline, painted } from './dom.js'
import { startFrame } from './frame.js'
import { startRoutes } from './routes.js'

startFrame()
byId('origin').textContent = `${location.origin}/api/admin`

// A tag that a reader presses before Swagger UI has drawn its own is opened then, by its address.
// Swagger UI removes the element that listens.
byId('swagger-ui').firstElementChild.addEventListener('click', (/** @type {MouseEvent} */ { target }) => {
  const heading = target instanceof Element ? target.closest('.opblock-tag') : null
  if (heading) location.hash = `#/${encodeURIComponent(heading.getAttribute('data-tag') ?? '')}`
})

/** Adds an element that loads a file. @param {HTMLElement} added */
function loaded(added) {
  document.head.append(added)
  return new Promise((resolve, reject) => {
    added.addEventListener('load', resolve)
    added.addEventListener('error', () => reject(new Error('Swagger UI could not be loaded.')))
  })
}

// Swagger UI occupies the page while it starts, so the reader sees the list of tags before.
await painted()
const style = new URL('swagger-ui-layer.css', import.meta.url).pathname
const [outline, { startSwaggerUi }] = await Promise.all([
  loadOutline(),
  import('./swagger.js'),
  loaded(element('link', { rel: 'stylesheet', href: style })),
  loaded(element('script', { src: `${base}/static/swagger-ui-bundle.js?v=SWAGGER_UI_VERSION` })),
])
startRoutes(outline, startSwaggerUi(outline))
