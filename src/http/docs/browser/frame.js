// @ts-check
// Starts the parts that every page has: search, sign-in form, theme, menu on small screens, and
// copy buttons.
import { byId, copy, element } from './dom.js'
import { startSearch } from './search.js'
import { startSession } from './session.js'

function startTheme() {
  byId('theme').addEventListener('click', () => {
    const isDark = document.documentElement.classList.toggle('dark-mode')
    localStorage.setItem('accord-theme', isDark ? 'dark' : 'light')
  })
}

function startMenu() {
  const [menu, sidebar] = [byId('menu'), byId('sidebar')]
  /** @param {boolean} isOpen */
  const open = (isOpen) => {
    document.body.classList.toggle('menu-open', isOpen)
    menu.setAttribute('aria-expanded', String(isOpen))
  }
  menu.addEventListener('click', () => open(menu.getAttribute('aria-expanded') !== 'true'))
  sidebar.addEventListener('click', (/** @type {MouseEvent} */ event) => {
    if (event.target instanceof Element && event.target.closest('a')) open(false)
  })
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') open(false)
  })
}

/** Adds a copy button to each code block of a guide. */
function addCopyButtons() {
  for (const block of document.querySelectorAll('.guide pre')) {
    const button = element('button', { type: 'button', class: 'copy', 'aria-label': 'Copy the code' }, 'Copy')
    button.addEventListener('click', () => copy(block.querySelector('code')?.textContent ?? '', button))
    const place = element('div', { class: 'code' })
    block.replaceWith(place)
    place.append(block, button)
  }
}

/**
 * Opens all `details` elements while the page is printed. An open operation prints alone.
 */
function startPrinting() {
  /** @type {HTMLDetailsElement[]} */
  let opened = []
  addEventListener('beforeprint', () => {
    document.body.classList.toggle('prints-operation', document.querySelector('.opblock.is-open') !== null)
    opened = [...document.querySelectorAll('main details')].flatMap((each) =>
      each instanceof HTMLDetailsElement && !each.open ? [each] : [],
    )
    for (const each of opened) each.open = true
  })
  addEventListener('afterprint', () => {
    for (const each of opened) each.open = false
  })
}

export function startFrame() {
  startTheme()
  startMenu()
  startSearch()
  startSession()
  startPrinting()
  addCopyButtons()
  // theme.js repeats the clicks that it has kept.
  dispatchEvent(new Event('accord-started'))
}
