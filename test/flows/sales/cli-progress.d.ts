// Types for the part of cli-progress that demo.ts uses. The package has no types.
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
