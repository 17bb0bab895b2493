// Deletes leads, persons and organizations. If many activities are linked to the record alone, or
// many custom attributes refer to it, a job first deletes the activities and the references, and
// then the record.
import { all, defineRemoval, type RecordChange, type RemovalJob } from '../../jobs/removals.ts'
import type { Context } from '../../kernel/context.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { adoptArchives } from '../../kernel/history/archive.ts'
import { massDelete } from '../../kernel/resource/mass.ts'
import { referencesTo } from '../attributes/delete-hooks.ts'
import { leads } from '../leads/resource.ts'
import { organizations } from '../organizations/resource.ts'
import { persons } from '../persons/resource.ts'
import { deleteOrDefer } from '../system/jobs.ts'
import { linkedOnlyTo } from './links.ts'
import { activities } from './resource.ts'

type Subject = typeof leads | typeof persons | typeof organizations
type Entity = 'leads' | 'persons' | 'organizations'

async function pending(ctx: Context, entity: Entity, id: number, limit: number): Promise<RecordChange[]> {
  const linked = (await linkedOnlyTo(ctx, entity, id)).slice(0, limit)
  const changes = linked.map(
    (activityId): RecordChange =>
      (ctx) =>
        activities.remove(ctx, activityId),
  )
  if (changes.length >= limit) return changes
  return [...changes, ...(await referencesTo(ctx, entity, id, limit - changes.length))]
}

const removalOf = (
  subject: Subject,
  entity: Entity,
  operation: 'deleteLead' | 'deletePerson' | 'deleteOrganization',
): RemovalJob<object> =>
  defineRemoval<object>({
    kind: `${entity}.remove`,
    entity,
    noun: subject.noun,
    operation: () => operation,
    count: async (ctx, id) => (await pending(ctx, entity, id, all)).length,
    pending: (ctx, id, _request, limit) => pending(ctx, entity, id, limit),
    async finish(ctx, id) {
      await subject.remove(ctx, id)
      await adoptArchives(ctx, entity, id)
    },
  })

const removals = {
  leads: removalOf(leads, 'leads', 'deleteLead'),
  persons: removalOf(persons, 'persons', 'deletePerson'),
  organizations: removalOf(organizations, 'organizations', 'deleteOrganization'),
}

/** Starts the job and returns its id. Returns null if the record can be deleted at once. */
const starting =
  (subject: Subject, { startDeletion }: RemovalJob<object>) =>
  async (ctx: Context, id: number, replacement?: number): Promise<number | null> => {
    await subject.assertVisible(ctx, id)
    return startDeletion(ctx, id, {}, replacement)
  }

const start = {
  leads: starting(leads, removals.leads),
  persons: starting(persons, removals.persons),
  organizations: starting(organizations, removals.organizations),
}

const message = 'The records that belong to it alone are deleted, and then the record itself.'

export const handlers = {
  deleteLead: deleteOrDefer(start.leads, leads.handlers.deleteLead, message),
  deletePerson: deleteOrDefer(start.persons, persons.handlers.deletePerson, message),
  deleteOrganization: deleteOrDefer(start.organizations, organizations.handlers.deleteOrganization, message),
  massDeleteLeads: massDelete(leads, { defer: start.leads }),
  massDeletePersons: massDelete(persons, { defer: start.persons }),
  massDeleteOrganizations: massDelete(organizations, { defer: start.organizations }),
} satisfies Partial<Handlers>

export const jobs = Object.values(removals).map(({ job }) => job)
