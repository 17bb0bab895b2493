// @ts-check
// Sets the dark or light theme before the first paint: the reader's choice, or that of the system.
// Swagger UI styles `html.dark-mode`.
;(() => {
  const system = matchMedia('(prefers-color-scheme: dark)')
  const apply = () => {
    const chosen = localStorage.getItem('accord-theme')
    document.documentElement.classList.toggle('dark-mode', chosen ? chosen === 'dark' : system.matches)
  }
  apply()
  system.addEventListener('change', apply)
})()
