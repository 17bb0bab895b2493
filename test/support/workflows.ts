// Workflows for tests: short definitions, and access to their logs.
import type { Caller, TestServer } from './app.ts'
import { unique } from './given.ts'

export const path = '/settings/workflows'

/** Actions that suit most tests. */
export const note = { id: 'add_note_as_activity', value: 'Looked at {%leads.title%}.' }
export const set = (attribute: string, value: unknown, id = 'update_lead') => ({ id, attribute, value })

/** Switches off the two workflows of a new installation. */
export async function alone(server: TestServer): Promise<void> {
  for (const id of [1, 2]) await server.admin.put(`${path}/${id}`, { is_active: false })
}

export function workflowsOn(server: TestServer) {
  /** A workflow that runs when a lead changes, unless the test says otherwise; returns its id. */
  async function workflow(changes: Record<string, unknown>): Promise<number> {
    const { status, body, text } = await server.admin.post(path, {
      name: `Workflow ${unique()}`,
      entity_type: 'leads',
      event: 'lead.update.after',
      actions: [{ id: 'add_tag', value: 'Seen' }],
      ...changes,
    })
    if (status !== 201) throw new Error(text)
    return body.data.id
  }
  /** In the order of creation. */
  const runs = async (id: number, caller: Caller = server.admin, query = '') =>
    (await caller.get(`${path}/${id}/runs?sort=id${query}`)).body.data
  const states = async (id: number): Promise<string[]> => (await runs(id)).map(({ state }: { state: string }) => state)
  const tagsOf = async (lead: number): Promise<string[]> =>
    (await server.admin.get(`/leads/${lead}`)).body.data.tags.map(({ name }: { name: string }) => name)
  return { workflow, runs, states, tagsOf }
}
