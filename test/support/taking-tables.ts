// Imports tables of other programs for tests, with the settings that the analysis suggests.
import { readFileSync } from 'node:fs'
import type { Caller } from './app.ts'
import { file, form } from './form.ts'
import { importing, path } from './importing.ts'

/** Returns the bytes of a file of the folder `tables`. */
const table = (name: string): Buffer => readFileSync(new URL(`./tables/${name}`, import.meta.url))

const lists: Record<string, string> = {
  persons: '/contacts/persons',
  organizations: '/contacts/organizations',
  products: '/products',
  leads: '/leads',
}

export function takingTables(caller: () => Caller) {
  /** Imports a file with the suggested settings, and with the changes of a test. */
  const take = async (
    type: string,
    name: string,
    bytes: string | Uint8Array = table(name),
    changes: Record<string, unknown> = {},
  ) => {
    const about = { type, action: 'append', validation_strategy: 'skip-errors', process_in_queue: 'false' }
    const sent = await form({ ...about, file: file(name, bytes) })
    const created = await caller().post(path, sent.body, { headers: sent.headers })
    if (created.status !== 201) throw new Error(created.text)
    const { id } = created.body.data
    const analysis = (await caller().get(`${path}/${id}/analysis`)).body.data
    const put = await caller().put(`${path}/${id}`, { ...analysis.settings, ...changes })
    if (put.status !== 200) throw new Error(put.text)
    const validated = await importing(caller()).post(id, 'validate')
    const done = validated.state === 'validated' ? await importing(caller()).post(id, 'start') : validated
    return { analysis, done, validated }
  }
  const stored = async (type: string) => (await caller().get(`${lists[type]}?sort=id`)).body.data
  return { take, stored }
}

/** Returns the fields of a person that address books have. */
export const personOf = ({ name, emails, contact_numbers, job_title, organization, tags }: any) => ({
  name,
  emails: emails.map(({ value }: any) => value),
  contact_numbers: contact_numbers.map(({ value }: any) => value),
  job_title,
  organization: organization?.name ?? null,
  tags: tags.map((tag: any) => tag.name),
})
