// The migration of the templates of invitations: those of an earlier version that were never edited
// become those of a new installation, and others stay.
import { expect, it } from 'vitest'
import { up } from '../../db/migrations/0038_invitation_templates.ts'
import { useServer } from '../support/using.ts'

const server = useServer()

const rows = [
  ['title', 'title'],
  ['from', 'schedule_from'],
  ['to', 'schedule_to'],
  ['place', 'location'],
  ['participants', 'participants'],
].map(([label, field]) => `<tr><th align="left">{%texts.${label}%}</th><td>{%activities.${field}%}</td></tr>`)
const old = `<table>${rows.join('')}</table>`

it('renews templates that were never edited, and no others', async () => {
  const { db } = server.store
  const now = await db.selectFrom('email_templates').select(['id', 'subject', 'content']).orderBy('id').execute()
  for (const { id, subject } of now)
    await db
      .updateTable('email_templates')
      .set({ subject: subject.replace('short_time', 'schedule_from'), content: old, version: id === 3 ? 2 : 1 })
      .where('id', '=', id)
      .execute()
  await up(db as never)
  const after = await db.selectFrom('email_templates').select(['id', 'subject', 'content']).orderBy('id').execute()
  expect(after.slice(0, 2)).toEqual(now.slice(0, 2))
  expect(after[2]?.content).toBe(old)
})
