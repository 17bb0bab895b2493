// Common passwords are refused by every operation and command that sets a password.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openStore } from '../../../db/store.ts'
import { install } from '../../../src/commands/install/install.ts'
import { digestOf } from '../../../src/resources/authentication/password-links.ts'
import { adminPassword, testConfig } from '../../support/app.ts'
import { someone } from '../../support/people.ts'
import { useNewServers } from '../../support/using.ts'

const server = useNewServers()

const user = { name: 'Ann Example', email: 'ann@example.com', role_id: 1 }
const weak = ['password', 'Password1', '12345678', 'QWERTYUIOP', 'letmein123', 'Ann@Example.com', ' ann example ']
const twice = (password: string) => ({ password, password_confirmation: password })

describe.each(weak)('%j as a password', (password) => {
  it('is refused for a new user', async () => {
    const { status, body } = await server.admin.post('/settings/users', { ...user, ...twice(password) })
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, ['password']])
  })

  it('is refused for a user who is there', async () => {
    const ann = await someone(server, ['leads'], user)
    const { status, body } = await server.admin.put(`/settings/users/${ann.id}`, twice(password))
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, ['password']])
  })

  it('is refused for the own account, by the new name as well', async () => {
    const sent = { ...twice(password), name: user.name, email: user.email, current_password: adminPassword }
    const { status, body } = await server.admin.put('/account', sent)
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, ['password']])
  })

  it('is refused behind a link, which stays good', async () => {
    const ann = await someone(server, ['leads'], user)
    const at = server.clock.now().toISOString()
    const link = { user_id: ann.id, secret_hash: digestOf('s', user.email), created_at: at }
    await server.store.db
      .insertInto('password_resets')
      .values({ ...link, expires_at: '2027-01-01T00:00:00.000Z' })
      .execute()
    const reset = (word: string) =>
      server.anonymous.post('/reset-password', { email: user.email, token: 's', ...twice(word) })
    const { status, body } = await reset(password)
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, ['password']])
    expect((await reset('quite another password')).status).toBe(200)
  })
})

it('what is in no list is taken', async () => {
  expect((await server.admin.post('/settings/users', { ...user, ...twice('Passwords, plural') })).status).toBe(201)
})

it.each(['password123', 'admin@example.com', 'example admin'])(
  '%j is refused at the installation',
  async (adminPassword) => {
    const folder = mkdtempSync(join(tmpdir(), 'accord-install-'))
    const store = openStore('sqlite::memory:')
    try {
      const config = testConfig({ adminPassword, dataDir: folder })
      await expect(install(config, store, { folder })).rejects.toThrow(/^ACCORD_ADMIN_PASSWORD .*(commonest|equal)/)
      expect(readdirSync(folder)).toEqual([])
    } finally {
      await store.close()
      rmSync(folder, { recursive: true })
    }
  },
)
