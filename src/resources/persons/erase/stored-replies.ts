// Removes stored replies of requests with an Idempotency-Key that show an erased person. A repeated
// request then gets a 409, and does not create the person again. Answers of bulk writes stay: they
// show no record, but a message in them may name the person.

import { openOrNull } from '../../../kernel/auth/encryption.ts'
import type { Context } from '../../../kernel/context.ts'
import { chunks } from '../../../kernel/history/archive.ts'
import { yieldToEventLoop } from '../../../kernel/runtime/cooperative.ts'
import { redactionOf } from './redact.ts'
import { parsedOrNull, type Scope } from './scope.ts'

/** Returns the number of replies that were removed. */
export async function eraseStoredReplies(ctx: Context, scope: Scope): Promise<number> {
  const { db, services } = ctx
  const names = redactionOf(scope.names)
  const rows = await db.selectFrom('idempotency_keys').select('id').where('body', 'is not', null).execute()
  let count = 0
  for (const part of chunks(rows, 50)) {
    const ids = part.map(({ id }) => id)
    for (const row of await db.selectFrom('idempotency_keys').select(['id', 'body']).where('id', 'in', ids).execute()) {
      const body = openOrNull(services.encryption, row.body ?? '')
      if (body === null || !(names?.text(body) !== body || shows(parsedOrNull(body), scope))) continue
      const changes = { state: 'completed' as const, body: null, headers: null }
      await db.updateTable('idempotency_keys').set(changes).where('id', '=', row.id).execute()
      count += 1
    }
    await yieldToEventLoop()
  }
  return count
}

/** Replaces the person in stored answers of bulk writes. Returns the number of changed rows. */
export async function eraseBulkAnswers({ db, services }: Context, scope: Scope): Promise<number> {
  const names = redactionOf(scope.names)
  if (!names) return 0
  const rows = await db.selectFrom('bulk_answers').select(['idempotency_key_id', 'position']).execute()
  let count = 0
  for (const { idempotency_key_id, position } of rows) {
    const at = { idempotency_key_id, position }
    const row = await db
      .selectFrom('bulk_answers')
      .select('answers')
      .where((eb) => eb.and(at))
      .executeTakeFirst()
    const text = openOrNull(services.encryption, row?.answers ?? '')
    const clean = text === null ? text : names.text(text)
    if (clean !== null && clean !== text) {
      const answers = services.encryption.encrypt(clean)
      await db
        .updateTable('bulk_answers')
        .set({ answers })
        .where((eb) => eb.and(at))
        .execute()
      count += 1
    }
    await yieldToEventLoop()
  }
  return count
}

/** Returns whether a reply shows the person or one of its records. */
function shows(value: unknown, scope: Scope): boolean {
  if (Array.isArray(value)) return value.some((each) => shows(each, scope))
  if (typeof value !== 'object' || value === null) return false
  const record = value as Record<string, unknown>
  const { id, ids } = scope
  if (record.person_id === id || (record.id === id && ('email' in record || 'contact_numbers' in record))) return true
  const kinds = [
    ['lead_value', ids.leads],
    ['billing_address', ids.quotes],
    ['schedule_from', ids.activities],
    ['thread_id', ids.emails],
  ] as const
  if (kinds.some(([key, list]) => key in record && list.includes(Number(record.id)))) return true
  return Object.values(record).some((each) => shows(each, scope))
}
