/** For tests, yours and ours: a real client on a real server in memory, transcripts, and a clock moved by hand. */
export { memoryPair } from '../transports/memory.ts'
export { type FakeClock, fakeClock } from './clock.ts'
export { connectInMemory, type InMemoryOptions } from './connect.ts'
export { type PlayOptions, playTranscript } from './play.ts'
export { type Recording, recordTranscript } from './record.ts'
export { type OnFrame, type PassedFrame, tapConnection } from './tap.ts'
export { parseTranscript, type Transcript, type TranscriptStep } from './transcript.ts'
