// What our documentation page adds to Swagger UI: a mark, a little style, and where the token is kept.

const mark = `<path d="M4 26 16 6l12 20h-6.2L16 16.4 10.2 26z" fill="#0b6fa8"/><path d="M11 26h10l-5-8.2z" fill="#f2a33a"/>`

export const favicon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${mark}</svg>`

export const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 168 32" width="168" height="32">${mark}<text x="38" y="23" font-family="system-ui,sans-serif" font-size="19" font-weight="600" fill="#fff">Accord CRM</text></svg>`

/** The box that loads another document is hidden: this page shows this server. */
export const pageStyle = `
.swagger-ui .topbar{background:#12304a;padding:8px 0}
.swagger-ui .topbar .download-url-wrapper{display:none}
.swagger-ui .info{margin:24px 0}
.swagger-ui .info .title small.version-stamp{background:#0b6fa8}
.swagger-ui .opblock .opblock-summary-operation-id{opacity:.7}
`

/**
 * Swagger UI keeps an authorised token in local storage, where it would outlive the tab. In session storage it survives
 * reloads and ends with the tab (DOMAIN 26).
 */
export const sessionScript = `Object.defineProperty(window, 'localStorage', { value: window.sessionStorage, configurable: true })\n`
