// The login of the limit server: verifies the same hash, creates a token and a device token, and
// limits their numbers as the contract requires.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { verify } from 'argon2'
import type { Database } from 'better-sqlite3'
import { eventLog, foldText, Refused } from './limit.events.ts'

const maxTokens = 50
const maxDevices = 20

export function createLogin(database: Database) {
  const one = (text: string) => database.prepare<unknown[]>(text)
  const log = eventLog(database)
  const accountOf = one('select id, name, email, password_hash from users where email_key = ? and is_active = 1')
  const insertToken =
    one(`insert into tokens (user_id, name, kind, abilities, secret_hash, expires_at, created_at, updated_at)
    values (?, ?, 'login', '["*"]', ?, ?, ?, ?)`)
  const oldTokens =
    one(`select id, name, expires_at, last_used_at, last_used_ip, created_at from tokens where user_id = ?
    and kind = 'login' and id <> ? order by coalesce(last_used_at, created_at), id`)
  const aliveTokens = one(`select count(*) from tokens where kind = 'login' and user_id = ?`).pluck()
  const deleteToken = one('delete from tokens where id = ?')
  const oldDevices = one(`delete from sign_in_devices where id in (select id from sign_in_devices where user_id = ?
    order by last_used_at desc, id desc limit -1 offset ?)`)
  const insertDevice = one(
    'insert into sign_in_devices (user_id, secret_hash, last_used_at, created_at) values (?, ?, ?, ?)',
  )

  type Account = { id: number; name: string; email: string; password_hash: string }
  const signIn = database.transaction((user: Account, name: string, ip: string) => {
    const at = new Date().toISOString()
    const expires_at = new Date(Date.now() + 365 * 24 * 60 * 60 * 1000).toISOString()
    const secret = randomBytes(32).toString('base64url')
    const hash = createHash('sha256').update(secret).digest('hex')
    const id = Number(insertToken.run(user.id, name, hash, expires_at, at, at).lastInsertRowid)
    const requestId = randomUUID()
    const rest = { allowed_ips: [], user_id: user.id, parent_id: null }
    const shown = {
      id,
      name,
      kind: 'login',
      abilities: ['*'],
      expires_at,
      last_used_at: null,
      last_used_ip: null,
      ...rest,
      created_at: at,
    }
    const about = { entity_type: 'tokens', entity_id: id, token_id: null, owner_id: user.id }
    log(
      { ...about, name: 'user.token.create.after', after: JSON.stringify(shown), changed: Object.keys(shown) },
      requestId,
      ip,
      at,
    )
    const beyond = (aliveTokens.get(user.id) as number) - maxTokens
    for (const old of beyond > 0
      ? (oldTokens.all(user.id, id) as { id: number; created_at: string }[]).slice(0, beyond)
      : []) {
      deleteToken.run(old.id)
      const { created_at, ...was } = old
      const before = JSON.stringify({ ...was, kind: 'login', abilities: ['*'], ...rest, created_at })
      log(
        { ...about, entity_id: old.id, name: 'user.token.delete.after', before, after: null, changed: [] },
        requestId,
        ip,
        at,
      )
    }
    const device = randomBytes(32).toString('base64url')
    oldDevices.run(user.id, maxDevices - 1)
    insertDevice.run(user.id, createHash('sha256').update(device).digest('hex'), at, at)
    return { id, secret, expires_at, device }
  })

  return async function login(body: { email: string; password: string; device_name: string }, ip: string) {
    const user = accountOf.get(foldText(body.email)) as Account | undefined
    if (!user || !(await verify(user.password_hash, body.password))) throw new Refused('Wrong credentials.')
    const { id, secret, expires_at, device } = signIn.immediate(user, body.device_name, ip)
    return {
      data: { id: user.id, name: user.name, email: user.email, token: `${id}|${secret}` },
      meta: { token_id: id, abilities: ['*'], expires_at, device_token: device },
      message: 'Signed in.',
    }
  }
}
