// @ts-check
// The entry module of the reference page.
import { base, byId, element, loadOutline, painted } from './dom.js'
import { startFrame } from './frame.js'
import { startRoutes } from './routes.js'

startFrame()
byId('origin').textContent = `${location.origin}/api/admin`

// If the reader clicks a tag before Swagger UI has started, the address stores the tag, and
// startRoutes opens it later. Swagger UI then removes the element with this listener.
byId('swagger-ui').firstElementChild.addEventListener('click', (/** @type {MouseEvent} */ { target }) => {
  const heading = target instanceof Element ? target.closest('.opblock-tag') : null
  if (heading) location.hash = `#/${encodeURIComponent(heading.getAttribute('data-tag') ?? '')}`
})

/** Adds an element that loads a file, and resolves after the load. @param {HTMLElement} added */
function loaded(added) {
  document.head.append(added)
  return new Promise((resolve, reject) => {
    added.addEventListener('load', resolve)
    added.addEventListener('error', () => reject(new Error('Swagger UI could not be loaded.')))
  })
}

// Swagger UI blocks the page while it starts, so the list of tags is painted first.
await painted()
const style = new URL('swagger-ui-layer.css', import.meta.url).pathname
const [outline, { startSwaggerUi }] = await Promise.all([
  loadOutline(),
  import('./swagger.js'),
  loaded(element('link', { rel: 'stylesheet', href: style })),
  loaded(element('script', { src: `${base}/static/swagger-ui-bundle.js?v=SWAGGER_UI_VERSION` })),
])
startRoutes(outline, startSwaggerUi(outline))
