// Languages: persons and web forms get the column `language`. The templates of invitations that
// were never edited get their labels from the message files, in the language of each recipient.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, createIndex, key, nullable, text } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'persons', 'language', nullable(text()))
  await addColumn(db, dialect, 'persons', 'language_key', nullable(key()))
  await createIndex(db, dialect, 'persons', { columns: ['language_key', 'id'] })
  await addColumn(db, dialect, 'web_forms', 'language', nullable(text()))
  await sql`update email_templates set content = ${tableOf((field) => `{%texts.${field}%}`)}
    where content = ${tableOf((field) => labels[field])} and version = 1`.execute(db)
  for (const [word, name] of [
    ['Changed', 'changed'],
    ['Cancelled', 'cancelled'],
  ]) {
    const rest = ': {%activities.title%}, {%activities.schedule_from%}'
    await sql`update email_templates set subject = ${`{%texts.${name}%}${rest}`}
      where subject = ${`${word}${rest}`} and version = 1`.execute(db)
  }
}

// Written out, so that later changes of the program do not change this migration.
const labels = { title: 'Title', from: 'From', to: 'To', place: 'Place', participants: 'Participants' }
type Label = keyof typeof labels
const fields: readonly [Label, string][] = [
  ['title', 'title'],
  ['from', 'schedule_from'],
  ['to', 'schedule_to'],
  ['place', 'location'],
  ['participants', 'participants'],
]

function tableOf(labelOf: (label: Label) => string): string {
  const rows = fields.map(
    ([label, field]) => `<tr><th align="left">${labelOf(label)}</th><td>{%activities.${field}%}</td></tr>`,
  )
  return `<table>${rows.join('')}</table>`
}
