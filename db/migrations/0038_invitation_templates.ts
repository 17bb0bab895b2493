// The templates of invitations that were never edited get a short time in the subject, and in the
// text one line for the time with its zone, the organizer, and a dash for an empty field.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const prefix of ['', '{%texts.changed%}: ', '{%texts.cancelled%}: ']) {
    const head = `${prefix}{%activities.title%}`
    const [before, after] = [`${head}, {%activities.schedule_from%}`, `${head}, {%activities.short_time%}`]
    await sql`update email_templates set subject = ${after}, content = ${newText(prefix)}
      where subject = ${before} and content = ${oldText} and version = 1`.execute(db)
  }
}

// Written out, so that later changes of the program do not change this migration.
const oldRows = [
  ['title', 'title'],
  ['from', 'schedule_from'],
  ['to', 'schedule_to'],
  ['place', 'location'],
  ['participants', 'participants'],
].map(([label, field]) => `<tr><th align="left">{%texts.${label}%}</th><td>{%activities.${field}%}</td></tr>`)
const oldText = `<table>${oldRows.join('')}</table>`

function newText(prefix: string): string {
  const rows = [
    ['when', 'activities.time'],
    ['place', 'activities.location|–'],
    ['organizer', 'users.name|–'],
    ['participants', 'activities.participants|–'],
  ].map(([label, field]) => {
    const cell = 'align="left" valign="top" style="padding:4px 16px 4px 0"'
    return `<tr><th ${cell}>{%texts.${label}%}:</th><td ${cell}>{%${field}%}</td></tr>`
  })
  return `<p><b>${prefix}{%activities.title%}</b></p><table cellspacing="0">${rows.join('')}</table>`
}
