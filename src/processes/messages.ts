// The messages between the supervisor and its processes. prom-client adds its own to the channel.

/** A process that serves tells the supervisor; then it can be asked to stop. */
export interface ServingMessage {
  type: 'accord:serving'
}

/** Asks a process to close. A signal does not fit, because a second signal ends it at once. */
export interface StopMessage {
  type: 'accord:stop'
}

/** Asks the supervisor for the metrics of all processes. */
export interface MetricsRequest {
  type: 'accord:metrics'
  id: number
}

export interface MetricsReply {
  type: 'accord:metrics-text'
  id: number
  /** Null when a process did not answer in time. */
  text: string | null
}

export type ToSupervisor = ServingMessage | MetricsRequest
export type FromSupervisor = StopMessage | MetricsReply
