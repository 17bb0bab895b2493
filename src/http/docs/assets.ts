// The additions of the documentation page to Swagger UI: a logo, CSS, and the storage of the token.

export const mark =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M4 26 16 6l12 20h-6.2L16 16.4 10.2 26z" fill="#3d9bd1"/><path d="M11 26h10l-5-8.2z" fill="#f2a33a"/></svg>'

/**
 * Returns CSS that shows a title bar. It replaces the bar of Swagger UI, whose logo has an inline
 * style that a strict CSP refuses.
 */
export const pageStyle = (appName: string): string => `
#swagger-ui::before{content:"${cssText(appName)}";display:block;padding:12px 20px 12px max(60px,calc((100vw - 1460px)/2 + 60px));
color:#fff;font:600 20px/24px system-ui,sans-serif;
background:#12304a url("data:image/svg+xml,${encodeURIComponent(mark)}") max(20px,calc((100vw - 1460px)/2 + 20px)) 50%/32px 32px no-repeat}
.swagger-ui .info{margin:28px 0}
.swagger-ui .opblock .opblock-summary-operation-id{opacity:.7}
`

const cssText = (text: string): string =>
  text.replaceAll(/["\\<\n\r]/g, (each) => `\\${each.charCodeAt(0).toString(16)} `)

/**
 * Makes Swagger UI keep the token in session storage, which survives a reload and ends with the tab
 * (DOMAIN 26). In local storage, the token would outlive the tab.
 */
export const sessionScript = `Object.defineProperty(window, 'localStorage', { value: window.sessionStorage, configurable: true })\n`
