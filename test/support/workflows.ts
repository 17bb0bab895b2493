// Creates workflows for tests and reads their runs.
import type { Caller, TestServer } from './app.ts'
import { unique } from './given.ts'

export const path = '/settings/workflows'

/** Two actions for workflows of tests. */
export const note = { id: 'add_note_as_activity', value: 'Looked at {%leads.title%}.' }
export const set = (attribute: string, value: unknown, id = 'update_lead') => ({ id, attribute, value })

/** Disables the two seeded workflows. */
export async function alone(server: TestServer): Promise<void> {
  for (const id of [1, 2]) await server.admin.put(`${path}/${id}`, { is_active: false })
}

export function workflowsOn(server: TestServer) {
  /** Creates a workflow and returns its id. By default, it runs when a lead changes. */
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
  /** Returns the runs in the order of creation. */
  const runs = async (id: number, caller: Caller = server.admin, query = '') =>
    (await caller.get(`${path}/${id}/runs?sort=id${query}`)).body.data
  const states = async (id: number): Promise<string[]> => (await runs(id)).map(({ state }: { state: string }) => state)
  const tagsOf = async (lead: number): Promise<string[]> =>
    (await server.admin.get(`/leads/${lead}`)).body.data.tags.map(({ name }: { name: string }) => name)
  return { workflow, runs, states, tagsOf }
}
