/** For tests, yours and ours: a real client on a real server in memory, transcripts, tapes, and a clock moved by hand. */
import '../core/required-node.ts'

export type { RecordingHeader } from '../recording/format.ts'
export type { ClientListener, ClientListenerOptions } from '../recording/listener.ts'
export type { FaultKind, InjectedFault, PlayingOptions } from '../recording/mock-server.ts'
export { openTape, type ServeTapeOptions, serveTape, type Tape } from '../recording/mock-server.ts'
export type { ProxyOptions, RecordingProxy } from '../recording/proxy.ts'
export type { RecordedConnection, RecordedFrame } from '../recording/read.ts'
export type { ReplayTapeOptions, TapeDifference, TapeReplayed } from '../recording/replay.ts'
export { type OnFrame, type PassedFrame, recordTape, type TapeRecording, tapConnection } from '../recording/tap.ts'
export {
  parseTranscript,
  recordTranscript,
  type Transcript,
  type TranscriptFrame,
  type TranscriptRecording,
  type TranscriptStep,
} from '../recording/transcript.ts'
export type { RecordOptions } from '../recording/writer.ts'
export { memoryPair } from '../transports/memory.ts'
export { type FakeClock, fakeClock } from './clock.ts'
export { connectInMemory, type InMemoryOptions, type ProxyTarget, replayTape, startRecording } from './connect.ts'
export { type PlayOptions, playTranscript } from './play.ts'
