// All jobs, event consumers and schedules of the slices. A job of a kind that is missing here is
// never run.

import type { EventConsumer } from './jobs/event-consumers.ts'
import type { AnyJob } from './jobs/queue.ts'
import type { Schedule } from './jobs/schedules.ts'
import { jobs as passwordLinks } from './resources/authentication/password-links.ts'
import { jobs as imports } from './resources/data-transfer/jobs.ts'
import { schedules as mailSchedules, jobs as mails } from './resources/emails/jobs.ts'
import { jobs as campaignJobs, schedules as campaignSchedules } from './resources/marketing/jobs.ts'
import { schedules as daily, jobs as housekeeping } from './resources/system/housekeeping.ts'
import { jobs as webhookJobs, eventConsumers as webhookReaders } from './resources/webhooks/jobs.ts'
import { eventConsumers as triggers, jobs as workflowRuns } from './resources/workflows/jobs.ts'

export const jobs: readonly AnyJob[] = [
  ...housekeeping,
  ...passwordLinks,
  ...workflowRuns,
  ...webhookJobs,
  ...imports,
  ...campaignJobs,
  ...mails,
]

/** Workflows run before webhooks, so that their changes are delivered in the same round. */
export const readers: readonly EventConsumer[] = [...triggers, ...webhookReaders]

export const schedules: readonly Schedule[] = [...daily, ...campaignSchedules, ...mailSchedules]
