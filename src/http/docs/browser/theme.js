// @ts-check
// Sets the dark or light theme before the first paint: the choice of the reader, or that of the
// system. Dark is the class `dark-mode`, which Swagger UI also uses.
;(() => {
  const system = matchMedia('(prefers-color-scheme: dark)')
  const apply = () => {
    const chosen = localStorage.getItem('accord-theme')
    document.documentElement.classList.toggle('dark-mode', chosen ? chosen === 'dark' : system.matches)
  }
  apply()
  system.addEventListener('change', apply)
})()
