import FerrySimulator

/// The published figures that the simulator is scored against.
///
/// A figure is taken when its source gives the values sent (ATT_MTU or their length) and at least one of interval and
/// PHY; its other conditions are simulated as given. Nothing is left out because it is not met. A controller's free
/// parameter is fitted on the first figure of its device, in this order; all others are judged.
extension PublishedFigure {
    static let all = arithmetic + measuredWithStatedEvents + measuredDevices + inPart

    /// `count` packets in each connection event, as the source says.
    private static func counted(_ count: Int) -> Controller {
        .stated(ControllerProfile(name: "\(count) per event", source: "the figure's source", packetsPerEvent: count))
    }

    private static let unlimited = Controller.stated(.ideal)

    private static let arithmetic = [
        PublishedFigure(
            number: "1", source: "Gomez, Oller, Paradells, Sensors 2012", sent: .notify(20), interval: 4_000,
            controller: unlimited, kind: .arithmetic, published: 236.7),
        PublishedFigure(
            number: "2", source: "Gomez 2012: 11 per event", sent: .notify(20), interval: 7.5, controller: unlimited,
            kind: .arithmetic, published: 234.7),
        PublishedFigure(
            number: "16a", source: "Memfault, A Practical Guide to BLE Throughput", sent: .notify(20), interval: 4_000,
            isEncrypted: true, controller: unlimited, kind: .arithmetic, published: 226),
        PublishedFigure(
            number: "16b", source: "Memfault", sent: .notify(182), attMTU: 185, interval: 4_000, isEncrypted: true,
            controller: unlimited, kind: .arithmetic, published: 294),
        PublishedFigure(
            number: "17", source: "Memfault", sent: .raw(251), interval: 4_000, dataLength: 251, isEncrypted: true,
            controller: unlimited, kind: .arithmetic, published: 803),
        PublishedFigure(
            number: "18", source: "Memfault: 7 packets per event", sent: .notify(182), attMTU: 185, interval: 15,
            isEncrypted: true, controller: counted(7), kind: .arithmetic, published: 97.6),
        PublishedFigure(
            number: "19a", source: "Memfault: 4 packets per event", sent: .raw(251), interval: 11.25, dataLength: 251,
            isEncrypted: true, controller: unlimited, kind: .arithmetic, published: 713),
        PublishedFigure(
            number: "19b", source: "Memfault: 5 packets per event", sent: .raw(251), interval: 12.5, dataLength: 251,
            isEncrypted: true, controller: unlimited, kind: .arithmetic, published: 803),
        PublishedFigure(
            number: "22", source: "Silicon Labs, Throughput with Bluetooth LE", sent: .request(247), attMTU: 250,
            interval: 7.5, dataLength: 251, controller: unlimited, kind: .arithmetic, published: 132.8),
    ]

    /// The packets of an event follow from what the source says.
    private static let measuredWithStatedEvents = [
        PublishedFigure(
            number: "4", source: "WWDC 2017 session 712, write with response", sent: .request(20), interval: 30,
            controller: unlimited, kind: .complete, published: 2.5),
        PublishedFigure(
            number: "5", source: "WWDC 2017 session 712, one per event", sent: .write(20), interval: 30,
            controller: counted(1), kind: .complete, published: 5),
        PublishedFigure(
            number: "14a", source: "Nordic S132 v7.1", sent: .request(20), interval: 7.5, controller: unlimited,
            kind: .complete, published: 10.6),
        PublishedFigure(
            number: "14b", source: "Nordic S132 v7.1", sent: .request(244), attMTU: 247, interval: 50, dataLength: 251,
            controller: unlimited, kind: .complete, published: 19.5),
        PublishedFigure(
            number: "14c", source: "Nordic S132 v7.1", sent: .request(244), attMTU: 247, interval: 400, dataLength: 251,
            controller: unlimited, kind: .complete, published: 2.4),
        PublishedFigure(
            number: "21", source: "adafruit/Adafruit_nRF52_Arduino#318, events as long as the interval",
            sent: .notify(244), attMTU: 247, interval: 187.5, phy: .le2M, dataLength: 251, controller: unlimited,
            kind: .complete, published: 1_376),
        PublishedFigure(
            number: "23a", source: "TI, Bluetooth 5 Throughput, CC13x2/CC26x2", sent: .notify(244), attMTU: 251,
            interval: 200, dataLength: 251, controller: unlimited, kind: .complete, published: 780.8),
        PublishedFigure(
            number: "23b", source: "TI, Bluetooth 5 Throughput", sent: .notify(244), attMTU: 251, interval: 200,
            phy: .le2M, dataLength: 251, controller: unlimited, kind: .complete, published: 1_385.92),
        PublishedFigure(
            number: "23c", source: "TI, Bluetooth 5 Throughput", sent: .notify(244), attMTU: 251, interval: 200,
            phy: .codedS2, dataLength: 251, controller: unlimited, kind: .complete, published: 351.36),
        PublishedFigure(
            number: "23d", source: "TI, Bluetooth 5 Throughput", sent: .notify(244), attMTU: 251, interval: 200,
            phy: .codedS8, dataLength: 251, controller: unlimited, kind: .complete, published: 58.56),
        PublishedFigure(
            number: "24a", source: "anasimtiaz.com, nRF52 S132 v1 and iPhone 6: 2 per event", sent: .notify(20),
            interval: 30, controller: counted(2), kind: .complete, published: 10.67),
        PublishedFigure(
            number: "24b", source: "anasimtiaz.com, nRF52 S132 v2 and iPhone 6: 6 per event", sent: .notify(20),
            interval: 30, controller: counted(6), kind: .complete, published: 32),
        PublishedFigure(
            number: "25", source: "bluekitchen/btstack#622, CYW20704 and Xiaomi: 1 per event", sent: .notify(244),
            attMTU: 247, interval: 15, dataLength: 251, controller: counted(1), kind: .complete, published: 128),
        PublishedFigure(
            number: "26", source: "zephyrproject-rtos/zephyr#20153, nRF52: 2 per event", sent: .raw(251), interval: 7.5,
            phy: .le2M, dataLength: 251, controller: counted(2), kind: .complete, published: 550),
    ]

    /// The first of each device is fitted, the others are judged.
    private static let measuredDevices = [
        PublishedFigure(
            number: "3", source: "Gomez 2012, CC254x, cap of 4 as published; fitted: 17 % of packets damaged",
            sent: .notify(20), interval: 7.5, packetErrorRate: 0.17, controller: .stated(.cc254x), kind: .fitted,
            published: 58.48),
        PublishedFigure(
            number: "6", source: "WWDC 2017 session 712, packed", sent: .write(20), interval: 30,
            controller: .device(.phone27), kind: .fitted, published: 37),
        PublishedFigure(
            number: "7", source: "WWDC 2017 session 712, ATT_MTU 185", sent: .write(182), attMTU: 185, interval: 30,
            controller: .device(.phone27), kind: .complete, published: 48),
        PublishedFigure(
            number: "8", source: "WWDC 2017 session 712, extended data length", sent: .write(512), attMTU: 517,
            interval: 30, dataLength: 251, controller: .device(.phone), kind: .fitted, published: 135),
        PublishedFigure(
            number: "9", source: "WWDC 2017 session 712, L2CAP", sent: .channel(739), interval: 30, dataLength: 251,
            controller: .device(.phone), kind: .complete, published: 197),
        PublishedFigure(
            number: "10", source: "WWDC 2017 session 712, L2CAP", sent: .channel(739), interval: 15, dataLength: 251,
            controller: .device(.phone), kind: .complete, published: 394),
        PublishedFigure(
            number: "11", source: "Nordic S132 v7.1", sent: .notify(20), interval: 7.5,
            controller: .device(.softDevice),
            kind: .fitted, published: 192),
        PublishedFigure(
            number: "12", source: "Nordic S132 v7.1", sent: .notify(244), attMTU: 247, interval: 50, dataLength: 251,
            controller: .device(.softDevice), kind: .complete, published: 702.8),
        PublishedFigure(
            number: "13", source: "Nordic S132 v7.1", sent: .notify(244), attMTU: 247, interval: 50, phy: .le2M,
            dataLength: 251, controller: .device(.softDevice), kind: .complete, published: 1_327.5),
        PublishedFigure(
            number: "27a", source: "StreamAI/Nordic_nRF5_Project, S132 and Android: 726 x 1024 bit/s",
            sent: .notify(244),
            attMTU: 247, interval: 50, dataLength: 251, controller: .device(.softDevice), kind: .complete,
            published: 743.4),
        PublishedFigure(
            number: "27b", source: "StreamAI/Nordic_nRF5_Project, S132 and Android: 1334 x 1024 bit/s",
            sent: .notify(244), attMTU: 247, interval: 50, phy: .le2M, dataLength: 251,
            controller: .device(.softDevice), kind: .complete, published: 1_366),
        PublishedFigure(
            number: "15", source: "nRF Connect SDK throughput sample", sent: .notify(495), attMTU: 498, interval: 400,
            phy: .le2M, dataLength: 251, controller: .device(.nrfConnect), kind: .fitted, published: 1_363),
        PublishedFigure(
            number: "28", source: "nRF Connect SDK throughput sample, v2.4.0-ncs1", sent: .write(244), attMTU: 247,
            interval: 400, phy: .le2M, dataLength: 251, controller: .device(.nrfConnect), kind: .complete,
            published: 1_260),
        PublishedFigure(
            number: "20a", source: "Adafruit nRF52 throughput example", sent: .notify(20), interval: 20,
            controller: .device(.adafruit), kind: .fitted, published: 69.92),
        PublishedFigure(
            number: "20b", source: "Adafruit nRF52 throughput example", sent: .notify(20), interval: 7.5,
            controller: .device(.adafruit), kind: .complete, published: 188.96),
        PublishedFigure(
            number: "20c", source: "Adafruit nRF52 throughput example", sent: .notify(244), attMTU: 247, interval: 15,
            dataLength: 251, controller: .device(.adafruit), kind: .complete, published: 382.8),
    ]

    private static let inPart = [
        PublishedFigure(
            number: "29", source: "Apple forum 770717, iPhone 16 Pro Max, iOS 18.2: 300 to 400", sent: .notify(241),
            attMTU: 244, interval: 15, phy: .le2M, dataLength: 251, controller: .device(.phone), kind: .part,
            assumed: "data length", published: 350),
        PublishedFigure(
            number: "30", source: "blerpc.net, nRF54L15 and iPhone 16, reading in calls", sent: .notify(244),
            attMTU: 247, interval: 30, dataLength: 251, controller: .device(.phone), kind: .part,
            assumed: "PHY, data length", published: 211.2),
        PublishedFigure(
            number: "31", source: "espressif/esp-idf#13637, ESP32-S3 and an Apple central, L2CAP", sent: .channel(739),
            interval: 15, dataLength: 251, controller: .device(.phone), kind: .part, assumed: "PHY, length of SDUs",
            published: 480),
        PublishedFigure(
            number: "32", source: "h2zero/NimBLE-Arduino#183, iPhone to ESP32, 16 writes and an answer",
            sent: .write(511),
            attMTU: 517, interval: 15, dataLength: 251, controller: .device(.phone), kind: .part,
            assumed: "PHY, data length", published: 256),
        PublishedFigure(
            number: "33", source: "Apple forum 770717, Android: well over 1000", sent: .notify(241), attMTU: 244,
            interval: 15, phy: .le2M, dataLength: 251, controller: .stated(.android), kind: .part,
            assumed: "data length", published: 1_000),
        PublishedFigure(
            number: "34", source: "blerpc.net, nRF54L15 and Pixel 5, reading in calls", sent: .notify(244), attMTU: 247,
            interval: 30, dataLength: 251, controller: .stated(.android), kind: .part, assumed: "PHY, data length",
            published: 453.6),
        PublishedFigure(
            number: "35a", source: "ESP-IDF NimBLE throughput_app, two ESP32", sent: .notify(509), attMTU: 512,
            interval: 7.5, dataLength: 251, controller: unlimited, kind: .part, assumed: "data length", published: 340),
        PublishedFigure(
            number: "35b", source: "ESP-IDF NimBLE throughput_app, two ESP32", sent: .write(509), attMTU: 512,
            interval: 7.5, dataLength: 251, controller: unlimited, kind: .part, assumed: "data length", published: 500),
        PublishedFigure(
            number: "36a", source: "bluerange-io/bluerange-mesh#178, nRF5 SDK throughput example", sent: .notify(244),
            attMTU: 247, interval: 7.5, dataLength: 251, controller: .device(.softDevice), kind: .part,
            assumed: "data length", published: 262),
        PublishedFigure(
            number: "36b", source: "bluerange-io/bluerange-mesh#178, nRF5 SDK throughput example", sent: .notify(244),
            attMTU: 247, interval: 15, dataLength: 251, controller: .device(.softDevice), kind: .part,
            assumed: "data length", published: 490),
        PublishedFigure(
            number: "37", source: "nRF Connect SDK throughput sample, Zephyr 1.12 controller", sent: .write(244),
            attMTU: 247, interval: 400, phy: .le2M, dataLength: 251, controller: unlimited, kind: .part, assumed: "PHY",
            published: 1_212),
        PublishedFigure(
            number: "38a", source: "TI CC2640 throughput_example, without data length extension", sent: .notify(244),
            attMTU: 251, interval: 200, controller: unlimited, kind: .part,
            assumed: "length of values: more than fits the air", published: 308.8),
        PublishedFigure(
            number: "38b", source: "TI CC2640 throughput_example, 85 packets per event", sent: .notify(244),
            attMTU: 251, interval: 200, dataLength: 251, controller: unlimited, kind: .part,
            assumed: "interval: more than fits the air", published: 829.6),
        PublishedFigure(
            number: "39", source: "espressif/esp-idf#936, CSR8510 to ESP32: 30 to 33 kB/s", sent: .notify(194),
            attMTU: 197, interval: 30, controller: unlimited, kind: .part, assumed: "interval", published: 252),
    ]
}
