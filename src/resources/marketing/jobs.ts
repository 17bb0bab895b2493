// Background jobs of marketing: the daily run of the campaigns, and the jobs that queue and send
// campaign e-mails.
import { defineJob } from '../../jobs/queue.ts'
import type { Schedule } from '../../jobs/schedules.ts'
import { today } from '../../kernel/values/format.ts'
import { bounceJob } from './bounces.ts'
import { dailyAt } from './occurrence.ts'
import { queueMails } from './queue.ts'
import { processDay } from './run.ts'
import { sendMails } from './sending.ts'
import { sendTest } from './test-send.ts'

/**
 * Starts the campaigns of the current day. A campaign whose day was missed does not run, because
 * its e-mails would arrive too late.
 */
export const processCampaigns = defineJob<{ due: string }>({
  kind: 'campaigns.process',
  async run(job) {
    const ctx = { ...job, origin: 'campaign' } as const
    await processDay(ctx, today(ctx.time, ctx.services.config.timezone))
  },
})

export const jobs = [processCampaigns, queueMails, sendMails, sendTest, bounceJob]

export const schedules: readonly Schedule[] = [{ name: 'campaign:process', at: dailyAt, job: processCampaigns }]
