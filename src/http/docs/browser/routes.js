// @ts-check
// Deep links: `#/Leads/createLead` opens the operation and scrolls to it. The sidebar highlights
// the operation at the current scroll position.
import { byId } from './dom.js'
import { openOperation, openTag } from './tags.js'

const current = () => location.hash.slice(2).split('/').map(decoded)

/** @param {string} text A part of the address, which may be malformed. */
function decoded(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}

async function open() {
  const [tag = '', id] = current()
  const found = id ? await openOperation(tag, id) : openTag(tag)
  if (!found) return
  found.scrollIntoView({ block: 'start' })
  found.querySelector('button')?.focus({ preventScroll: true })
  mark(id ?? '')
}

export function startRoutes() {
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
    const blocks = [...document.querySelectorAll('.opblock[data-operation]')]
    const at = blocks.findLast((block) => block.getBoundingClientRect().top < 140)
    const id = at?.getAttribute('data-operation')
    if (id) mark(id)
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
