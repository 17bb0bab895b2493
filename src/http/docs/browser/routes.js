// @ts-check
// Deep links: `#/Leads/createLead` opens the operation and scrolls to it. The sidebar highlights
// the operation at the current scroll position.
import { byId } from './dom.js'

/** @typedef {import('./dom.js').Outline} Outline */

const current = () => location.hash.slice(2).split('/').map(decodeURIComponent)

/** @param {string} tag @param {string} id The element id that Swagger UI gives an operation. */
const blockId = (tag, id) => `operations-${tag}-${id}`.replace(/ /g, '_')

/**
 * Waits until the element and its content are rendered, for at most 300 frames.
 * @param {string} id
 */
async function drawn(id) {
  for (let frame = 0; frame < 300; frame++) {
    const found = document.getElementById(id)
    if (found && (found.tagName !== 'DIV' || found.querySelector('.responses-wrapper'))) return found
    await new Promise((resolve) => requestAnimationFrame(resolve))
  }
  return document.getElementById(id)
}

/** @param {Outline} outline @param {any} ui */
export function startRoutes(outline, ui) {
  const open = async () => {
    const [tag = '', id] = current()
    if (!outline.tags.some(({ name }) => name === tag)) return
    ui.layoutActions.show(['operations-tag', tag], true)
    if (id) ui.layoutActions.show(['operations', tag, id], true)
    const found = await drawn(id ? blockId(tag, id) : `operations-tag-${tag.replace(/ /g, '_')}`)
    found?.scrollIntoView({ block: 'start' })
    found?.querySelector('button')?.focus({ preventScroll: true })
    mark(id ?? '')
  }
  addEventListener('hashchange', open)
  // A link to the current address causes no `hashchange` event.
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[href*="#/"]') : null
    if (link instanceof HTMLAnchorElement && link.href === location.href) void open()
  })
  followScrolling()
  void open()
}

/** Highlights the operation in the sidebar and scrolls the sidebar to it. @param {string} id */
function mark(id) {
  for (const each of document.querySelectorAll('#sidebar [aria-current=true]')) each.removeAttribute('aria-current')
  const link = document.querySelector(`#sidebar [data-operation="${CSS.escape(id)}"]`)
  if (!link) return
  link.setAttribute('aria-current', 'true')
  const tag = link.closest('details')
  if (tag) tag.open = true
  const [sidebar, place] = [byId('sidebar'), link.getBoundingClientRect()]
  const frame = sidebar.getBoundingClientRect()
  // Not `scrollIntoView`, because it would also scroll the page.
  if (place.top < frame.top + 40 || place.bottom > frame.bottom - 40)
    sidebar.scrollTop += place.top - frame.top - frame.height / 3
}

function followScrolling() {
  let isWaiting = false
  const look = () => {
    isWaiting = false
    const top = byId('swagger-ui').getBoundingClientRect().top
    if (top > 0) return
    const blocks = [...document.querySelectorAll('.opblock')]
    const at = blocks.findLast((block) => block.getBoundingClientRect().top < 140)
    const id = at?.getAttribute('id')
    if (!id) return
    mark(id.slice(id.lastIndexOf('-') + 1))
  }
  addEventListener(
    'scroll',
    () => {
      if (isWaiting) return
      isWaiting = true
      requestAnimationFrame(look)
    },
    { passive: true },
  )
}
