// The pages outside of the documentation have its colors and its typeface.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()
const css = readFileSync('src/http/docs/browser/page.css', 'utf8')
const [, light = '', dark = ''] = /:root \{([^}]*)\}\n:root\.dark-mode \{([^}]*)\}/.exec(css) ?? []
const valueIn = (part: string, name: string): string | undefined => new RegExp(`${name}: ([^;]+);`).exec(part)?.[1]

describe('the login page', () => {
  it('has the colors and the typeface of the documentation, light and dark', async () => {
    const { body } = await server.inject({ method: 'GET', url: '/api/admin/session', headers: { accept: 'text/html' } })
    const own = [...body.matchAll(/(--[\w-]+):light-dark\((#\w+),(#\w+)\)/g)]
    expect(own.length).toBeGreaterThan(5)
    for (const [, name = '', day, night] of own)
      expect([name, day, night]).toEqual([name, valueIn(light, name), valueIn(dark, name)])
    expect(body).toContain('system-ui,-apple-system,"Segoe UI",sans-serif')
  })
})

describe('getErrorCatalogue', () => {
  it('has the colors and the typeface of the documentation, light and dark', async () => {
    const { body } = await server.inject({ method: 'GET', url: '/api/admin/documentation/errors' })
    for (const part of [light, dark]) expect(body).toContain(part)
  })
})
