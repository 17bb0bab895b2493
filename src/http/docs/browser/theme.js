// @ts-check
// Runs before the first paint. Sets the dark or light theme: the choice of the reader, or that of
// the system. Dark is the class `dark-mode`, which Swagger UI also uses. Keeps clicks on buttons
// until the modules have loaded, and says if they cannot be loaded.
;(() => {
  const system = matchMedia('(prefers-color-scheme: dark)')
  const apply = () => {
    const chosen = localStorage.getItem('accord-theme')
    document.documentElement.classList.toggle('dark-mode', chosen ? chosen === 'dark' : system.matches)
  }
  apply()
  system.addEventListener('change', apply)

  /** @type {HTMLButtonElement[]} */
  const pressed = []
  /** @param {MouseEvent} event */
  const keep = ({ target }) => {
    const button = target instanceof Element ? target.closest('button') : null
    if (button) pressed.push(button)
  }
  addEventListener('click', keep, true)
  addEventListener(
    'accord-started',
    () => {
      removeEventListener('click', keep, true)
      for (const each of pressed) each.click()
    },
    { once: true },
  )
  addEventListener(
    'error',
    ({ target }) => {
      if (!(target instanceof HTMLScriptElement) || target.type !== 'module') return
      const notice = document.createElement('p')
      notice.setAttribute('role', 'alert')
      notice.className = 'failed'
      notice.textContent = 'A script of this page could not be loaded. Reload the page to open operations.'
      document.querySelector('main')?.prepend(notice)
    },
    true,
  )
})()
