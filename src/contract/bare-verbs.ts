// The verbs of events that are stored and sent without a suffix: `lead.won`, not `lead.won.after`.

/** The verbs of events that are emitted after a create or update and repeat its change. */
export const followUps: readonly string[] = 'restore won lost reopened sent accepted declined expired bounced'.split(
  ' ',
)

/** All verbs without a suffix: those of follow-up events, and of facts that change no record. */
export const bareVerbs: readonly string[] = [
  ...followUps,
  'answered',
  'amended',
  'reminded',
  'due',
  'missed',
  'started',
  'completed',
  'failed',
]
