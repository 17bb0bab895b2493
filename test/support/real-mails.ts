// E-mails as real programs write them, with the expected results (mails/expected.json).
import { readFileSync } from 'node:fs'

export interface WantedMail {
  text?: string
  textContains?: string
  subject?: string
  from?: string[]
  name?: string
  attachments?: string[]
  is_automatic?: boolean
}

const folder = new URL('./mails/', import.meta.url)

export const realMail = (name: string): Buffer => readFileSync(new URL(name, folder))

export const realMails = Object.entries(
  JSON.parse(readFileSync(new URL('expected.json', folder), 'utf8')) as Record<string, WantedMail>,
)
