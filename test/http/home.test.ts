// The page at `/`: HTML for people, JSON for programs, and redirects from the paths of the API.
import { describe, expect, it } from 'vitest'
import { sourceHash } from '../../src/kernel/values/format.ts'
import { startServer } from '../support/app.ts'
import { useSharedServer } from '../support/using.ts'

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const server = useSharedServer({ config: { appName: 'Sales <b>&</b>' } })

const get = (url: string, accept?: string) =>
  server.inject({ url, headers: { host: 'crm.example:8000', ...(accept && { accept }) } })

describe('GET /', () => {
  it('is a page for a browser, whose links and first call exist', async () => {
    const { statusCode, headers, body } = await get('/', browser)
    expect([statusCode, headers['content-type'], headers.vary]).toEqual([200, 'text/html; charset=utf-8', 'Accept'])
    expect(body).toContain('<h1>Sales &lt;b&gt;&amp;&lt;/b&gt;</h1>')
    expect(body).toContain('curl http://crm.example:8000/api/admin/login')
    const hrefs = [...body.matchAll(/<a href="([^"]+)"/g)].map(([, href]) => `/${href}`)
    expect(hrefs.length).toBeGreaterThan(5)
    for (const href of hrefs) {
      const found = await get(href, browser)
      // The login page has the status 401.
      expect([href, found.statusCode]).toEqual([href, href === '/api/admin/session' ? 401 : 200])
    }
  })

  it('loads nothing, and runs nothing but its own script', async () => {
    const { headers, body } = await get('/', browser)
    const part = (name: string) => new RegExp(`<${name}>([^]*?)</${name}>`).exec(body)?.[1] ?? ''
    expect(headers['content-security-policy']).toBe(
      `default-src 'none'; style-src ${sourceHash(part('style'))}; script-src ${sourceHash(part('script'))}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    )
    expect(body).not.toMatch(/\bsrc=|@import|url\(|\sstyle=|\son\w+=/)
    expect([...body.matchAll(/<link[^>]+href="([^"]{0,5})/g)].map(([, href]) => href)).toEqual(['data:'])
  })

  it('is JSON with absolute links for a program, in every spelling of Accept', async () => {
    for (const accept of [undefined, '*/*', 'application/json', 'application/json, text/plain, */*']) {
      const { statusCode, headers, body } = await get('/', accept)
      expect([statusCode, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8'])
      const { name, ...links } = JSON.parse(body) as Record<string, string>
      expect(name).toBe('Sales <b>&</b>')
      for (const [key, url] of Object.entries(links)) {
        expect(url).toMatch(/^http:\/\/crm\.example:8000\//)
        const found = await get(new URL(url).pathname, 'application/json')
        expect([key, found.statusCode]).toEqual([key, key === 'sign_in' ? 401 : 200])
      }
    }
  })

  it('repeats no host that is none', async () => {
    const { body } = await server.inject({ url: '/', headers: { host: '"><script>', accept: browser } })
    expect(body).not.toContain('"><script>')
  })
})

describe('the address of the API', () => {
  it.each(['/api', '/api/', '/api/admin', '/api/admin/'])('%s leads to /', async (path) => {
    const { statusCode, headers } = await get(path, browser)
    expect([statusCode, headers.location]).toEqual([302, 'http://crm.example:8000/'])
  })

  it('leads to the public address behind a proxy', async () => {
    const behind = await startServer({ config: { appUrl: 'https://example.com/crm' } })
    const { headers } = await behind.inject({ url: '/api/admin' })
    expect(headers.location).toBe('https://example.com/crm/')
    await behind.close()
  })

  it('hides no path that does not exist', async () => {
    expect((await get('/api/other', 'application/json')).statusCode).toBe(404)
    expect((await get('/apis', browser)).statusCode).toBe(404)
  })
})
