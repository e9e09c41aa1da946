/** Sessions of a host on file, and playing them again. */
export type { RecordedLine, TurnLine } from './lines.ts'
export { openRecorder, type Recorder } from './record.ts'
export { type Difference, type Replayed, type ReplayGiven, type ReplayHost, type ReplayOptions, replay } from './replay.ts'
