// The messages between the supervisor and its processes. prom-client sends further messages over
// the same channel.

/** Sent by a process when it begins to serve. From then on it accepts a StopMessage. */
export interface ServingMessage {
  type: 'accord:serving'
}

/**
 * Asks a process to close. A signal does not fit, because a process that gets two signals ends at
 * once.
 */
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
