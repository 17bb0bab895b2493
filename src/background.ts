// Lists all jobs, event consumers and schedules of the slices. A job whose kind is missing here
// never runs.

import type { EventConsumer } from './jobs/event-consumers.ts'
import type { AnyJob } from './jobs/queue.ts'
import { restoreJob } from './jobs/restores.ts'
import type { Schedule } from './jobs/schedules.ts'
import { userRemoval } from './operations.ts'
import { invitationAnswersJob } from './resources/activities/invitation-answers.ts'
import { schedules as reminderSchedules, jobs as reminders } from './resources/activities/reminders.ts'
import { jobs as removals } from './resources/activities/removal.ts'
import { jobs as signInNotices } from './resources/authentication/notices.ts'
import { jobs as passwordLinks } from './resources/authentication/password-links.ts'
import { userMail } from './resources/authentication/user-mail.ts'
import { jobs as imports } from './resources/data-transfer/run/jobs.ts'
import { undoImport } from './resources/data-transfer/undo/undo-run.ts'
import { schedules as mailSchedules, jobs as mails } from './resources/emails/jobs.ts'
import { jobs as campaignJobs, schedules as campaignSchedules } from './resources/marketing/jobs.ts'
import { purgeErased } from './resources/persons/erase/purge.ts'
import { pipelineRemoval } from './resources/pipelines/resource.ts'
import { expireQuotes, schedules as quoteSchedules } from './resources/quotes/expiry.ts'
import { searchUpdate } from './resources/search/deferred-updates.ts'
import { schedules as daily, jobs as housekeeping } from './resources/system/housekeeping.ts'
import { tagRemoval } from './resources/tags/resource.ts'
import { jobs as webhookJobs, eventConsumers as webhookReaders } from './resources/webhooks/jobs.ts'
import {
  eventConsumers as triggers,
  jobs as workflowRuns,
  schedules as workflowSchedules,
} from './resources/workflows/jobs.ts'

export const jobs: readonly AnyJob[] = [
  ...housekeeping,
  ...passwordLinks,
  userMail,
  ...reminders,
  ...signInNotices,
  ...workflowRuns,
  ...webhookJobs,
  ...imports,
  undoImport,
  ...campaignJobs,
  ...mails,
  userRemoval.job,
  tagRemoval.job,
  pipelineRemoval.job,
  ...removals,
  invitationAnswersJob,
  restoreJob,
  expireQuotes,
  searchUpdate,
  purgeErased,
]

/**
 * The event consumers, in the order in which they process new events. Workflows come before
 * webhooks, so that webhooks deliver the changes of workflows at once.
 */
export const eventConsumers: readonly EventConsumer[] = [...triggers, ...webhookReaders]

export const schedules: readonly Schedule[] = [
  ...daily,
  ...campaignSchedules,
  ...mailSchedules,
  ...quoteSchedules,
  ...reminderSchedules,
  ...workflowSchedules,
]
