// HTML pages with texts from users, such as the names of the installation, attributes, forms and
// people. Browsers must show them as text and not as markup, and pages must not link to foreign
// addresses.
import { type DefaultTreeAdapterTypes, parse } from 'parse5'
import { describe, expect, it } from 'vitest'
import { systemContext } from '../../../src/kernel/context.ts'
import { plainMarkdown } from '../../../src/kernel/values/format.ts'
import { unsubscribeUrl } from '../../../src/resources/marketing/unsubscribe.ts'
import { facts } from '../../support/schema.ts'
import { useServer } from '../../support/using.ts'

type Node = DefaultTreeAdapterTypes.Node

const bad = `"><svg/onload=alert(1)><script>alert(2)</script><img src=x onerror=alert(3)></style></title>`

const server = useServer({ config: { appName: bad } })

/** Returns the elements and attributes of a page that could run scripts or load content. */
function activeIn(html: string): string[] {
  const found: string[] = []
  const look = (node: Node): void => {
    if ('tagName' in node) {
      if (['svg', 'iframe', 'object', 'embed', 'base'].includes(node.tagName)) found.push(node.tagName)
      // The logo of the documentation page is served by this server.
      const isLogo = node.attrs.some(
        ({ name, value }) => name === 'src' && /^\/api\/admin\/documentation\/[\w./-]+\/favicon\.svg$/.test(value),
      )
      if (node.tagName === 'img' && !isLogo) found.push('img')
      for (const { name, value } of node.attrs) {
        if (/^on/.test(name)) found.push(`${node.tagName} ${name}`)
        if (
          /^(href|src|action|formaction|content)$/.test(name) &&
          /(javascript|data|vbscript):/i.test(value.replace(/\s/g, '')) &&
          value !== 'data:,'
        )
          found.push(`${node.tagName} ${name}=${value}`)
      }
    }
    if ('childNodes' in node) for (const child of node.childNodes) look(child)
  }
  look(parse(html))
  return found
}

/** Returns the number of inline scripts in a page. */
const scriptsIn = (html: string): number => (html.match(/<script(?![^>]*\ssrc=)[^>]*>/g) ?? []).length

describe('a page', () => {
  it('is tested here, whichever the contract has', () => {
    const pages = facts.filter(([, { produces }]) => produces.includes('text/html')).map(([id]) => id)
    // Operations that return the page of another operation again, such as submitting a form, are
    // not tested twice.
    expect(pages.sort()).toEqual([
      'getDocumentation',
      'getErrorCatalogue',
      'getResetPasswordPage',
      'getUnsubscribePage',
      'getWebFormPage',
      'submitWebForm',
      'unsubscribe',
    ])
  })

  it.each([
    ['//api/admin/documentation', 0],
    ['//api/admin/documentation/errors', 0],
    ['//api/admin/leads', 1],
    ['//api/admin/reset-password', 1],
    ['unsubscribe', 0],
  ])('%s holds the name of the installation as text', async (path, scripts) => {
    const ctx = { ...systemContext(server.app.services, 'cli'), baseUrl: '' }
    const link = unsubscribeUrl(ctx, `${bad}@example.com`)
    const { text, headers, status } = await server.anonymous.get(path === 'unsubscribe' ? `/${link}` : path, {
      headers: { accept: 'text/html' },
    })
    expect([200, 401]).toContain(status)
    expect(headers['content-type']).toMatch(/^text\/html/)
    expect(activeIn(text)).toEqual([])
    expect(text).not.toContain('<script>alert')
    expect(scriptsIn(text)).toBe(scripts)
    const policy = String(headers['content-security-policy'])
    expect(policy).toMatch(/default-src 'none'/)
    expect(policy).toMatch(/base-uri 'none'/)
    expect(policy).toMatch(/frame-ancestors 'none'/)
    expect(policy.replaceAll(/style-src [^;]*/g, '')).not.toMatch(/unsafe-|\*|https?:/)
    expect(headers['x-content-type-options']).toBe('nosniff')
  })

  it('of a form may stand in frames of others, and runs nothing but its own script all the same', async () => {
    const attributes = (await server.admin.get('/settings/attributes?per_page=100')).body.data
    const name = attributes.find(
      (each: { code: string; entity_type: string }) => each.code === 'job_title' && each.entity_type === 'persons',
    )
    const { body } = await server.admin.post('/settings/web-forms', {
      title: bad,
      description: bad,
      submit_button_label: bad.slice(0, 50),
      submit_success_action: 'message',
      submit_success_content: bad,
      attributes: [
        { attribute_id: name.id, name: bad.slice(0, 50), placeholder: bad.slice(0, 50), default_value: bad },
      ],
    })
    const path = `//web-forms/forms/${body.data.form_id}`
    const page = await server.anonymous.get(`${path}/form.html`)
    const answer = await server.anonymous.post(
      path,
      new URLSearchParams({ 'persons[name]': bad, 'persons[emails][0][value]': 'a@example.com' }).toString(),
      { headers: { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' } },
    )
    for (const { text, headers, status } of [page, answer]) {
      expect(status, text).toBe(200)
      expect(activeIn(text)).toEqual([])
      const policy = String(headers['content-security-policy'])
      expect(policy).toMatch(
        /^default-src 'none'; style-src 'sha256-[^']+';( script-src 'sha256-[^']+'; connect-src 'self';)? form-action 'self'; base-uri 'none'; frame-ancestors \*$/,
      )
    }
    const script = (await server.anonymous.get(`${path}/form.js`)).text
    // If another page embeds the script inline, no text in it ends the script element.
    expect(script).not.toMatch(/<\/script|<!--/i)
  })

  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    ' javascript:alert(1)',
    'java\nscript:alert(1)',
    '\u0001javascript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:x',
    'file:///etc/passwd',
    '//evil.example',
    '/api/admin/leads',
    'https:',
    '',
  ])('leads from a form to no %j', async (content) => {
    const { status } = await server.admin.post('/settings/web-forms', {
      title: 'Contact',
      submit_button_label: 'Send',
      submit_success_action: 'redirect',
      submit_success_content: content,
    })
    expect(status).toBe(422)
  })

  it('has no redirect that a request could choose', async () => {
    for (const path of [
      '//api/admin/documentation//evil.example/json',
      '//evil.example/api/admin/documentation/json',
      '//api/admin/documentation/json?url=https://evil.example',
      '//api/admin/login?redirect=https://evil.example',
      '//\\evil.example',
    ]) {
      const { headers, status } = await server.anonymous.get(path, { headers: { host: 'crm.example.com' } })
      expect(status).toBeLessThan(500)
      expect(String(headers.location ?? '')).not.toContain('evil')
    }
  })
})

describe('the documentation', () => {
  it('shows names of attributes and options as text, not as Markdown', async () => {
    const { admin, anonymous } = server
    const name = '<img src=x onerror=alert(1)>![x](https://evil.example/p.png)'
    const made = await admin.post('/settings/attributes', {
      entity_type: 'leads',
      code: 'industry',
      name,
      type: 'select',
      options: [{ name: '[click](javascript:alert(1)) `x`' }],
    })
    expect(made.status, made.text).toBe(201)
    const { text } = await anonymous.get('//api/admin/openapi.json')
    const descriptions: string[] = []
    const look = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return
      for (const [key, each] of Object.entries(value)) {
        if (key === 'description' && typeof each === 'string') descriptions.push(each)
        else look(each)
      }
    }
    look(JSON.parse(text))
    const ours = descriptions.filter((each) => each.includes('onerror'))
    expect(ours.length).toBeGreaterThan(2)
    for (const each of ours) {
      expect(each).toContain(plainMarkdown(name))
      expect(each).not.toMatch(/(?<!\\)[<>[\]`!]/)
    }
    // JSON contains the unchanged text.
    expect(made.body.data.name).toBe(name)
  })

  it('keeps everyday names as they are', () => {
    for (const name of ['Industry', 'Budget (EUR)', 'first_name', 'R&D - 50 %', "Customer's no. #1"])
      expect(plainMarkdown(name)).toBe(name)
    expect(plainMarkdown('two\n# lines')).toBe('two # lines')
  })
})
