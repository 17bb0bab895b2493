// The part of cli-progress that the demonstration uses; the package has no types of its own.
declare module 'cli-progress' {
  export class SingleBar {
    constructor(options: {
      format: string
      clearOnComplete?: boolean
      hideCursor?: boolean
      noTTYOutput?: boolean
      notTTYSchedule?: number
    })
    start(total: number, value: number, payload?: Record<string, string>): void
    update(value: number): void
    stop(): void
  }
}
