// The dumbbell of bench/cases in ns-3 3.37: bulk TCP flows through one FIFO bottleneck.
//
//   group 0 ─┐
//   group 1 ─┼─ left ══ bottleneck ══ right (all sinks)
//   group 2 ─┘
//
// A group is a node with flows of one congestion control and one round-trip time. Its access link has a practically
// unlimited rate and the additional delay of its round-trip time over the path's. A single group without additional
// delay sends from `left` itself, which saves ns-3 a hop. Devices have drop-tail queues and no queue discipline,
// and there are no traces and no samples, so that ns-3 computes nothing but the flows.
//
// usage: dumbbell RATE_BPS DELAY_NS BUFFER_BYTES LOSS_RATIO SECONDS CC:FLOWS:EXTRA_RTT_NS...
// Prints one line of JSON: the packets that the bottleneck sent in both directions, and the payload bytes received.

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

struct Group
{
    std::string cc;
    uint32_t flows;
    int64_t extraRttNs;
};

Group
ParseGroup(const std::string& text)
{
    std::istringstream parts(text);
    std::string cc;
    std::string flows;
    std::string extra;
    if (!std::getline(parts, cc, ':') || !std::getline(parts, flows, ':') || !std::getline(parts, extra))
    {
        throw std::invalid_argument("a group is CC:FLOWS:EXTRA_RTT_NS, not " + text);
    }
    return {cc, static_cast<uint32_t>(std::stoul(flows)), std::stoll(extra)};
}

TypeId
ControllerOf(const std::string& cc)
{
    if (cc == "cubic")
    {
        return TcpCubic::GetTypeId();
    }
    if (cc == "bbr")
    {
        return TcpBbr::GetTypeId();
    }
    if (cc == "reno")
    {
        return TcpLinuxReno::GetTypeId();
    }
    throw std::invalid_argument("no congestion control of ns-3 is known here for " + cc);
}

std::string
InBytes(uint64_t bytes)
{
    return std::to_string(bytes) + "B";
}

// Connects two nodes and assigns addresses, without the queue discipline that ns-3 adds to every device.
NetDeviceContainer
Join(Ptr<Node> left, Ptr<Node> right, uint64_t rateBps, int64_t delayNs, uint64_t queueBytes, Ipv4AddressHelper& addresses)
{
    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rateBps)));
    helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delayNs)));
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(InBytes(queueBytes)));
    NetDeviceContainer devices = helper.Install(left, right);
    addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    addresses.NewNetwork();
    return devices;
}

uint64_t
SentPackets(Ptr<NetDevice> device)
{
    Ptr<Queue<Packet>> queue = DynamicCast<PointToPointNetDevice>(device)->GetQueue();
    return queue->GetTotalReceivedPackets() - queue->GetNPackets();
}

} // namespace

int
main(int count, char** values)
{
    if (count < 7)
    {
        std::cerr << "usage: dumbbell RATE_BPS DELAY_NS BUFFER_BYTES LOSS_RATIO SECONDS CC:FLOWS:EXTRA_RTT_NS...\n";
        return 2;
    }
    const uint64_t rateBps = std::stoull(values[1]);
    const int64_t delayNs = std::stoll(values[2]);
    const uint64_t bufferBytes = std::stoull(values[3]);
    const double lossRatio = std::stod(values[4]);
    const double seconds = std::stod(values[5]);
    std::vector<Group> groups;
    int64_t longestExtraNs = 0;
    uint64_t flows = 0;
    for (int at = 6; at < count; ++at)
    {
        groups.push_back(ParseGroup(values[at]));
        flows += groups.back().flows;
        longestExtraNs = std::max(longestExtraNs, groups.back().extraRttNs);
    }

    // The same settings as thalweg's hosts: full-sized segments, SACK, an initial window of ten segments, a minimum RTO
    // of 200 ms, and socket buffers that do not limit a flow: four times the path's capacity, or forty times a flow's
    // share of it if there are more than ten flows, plus 1 MiB.
    const uint64_t bdpBytes = rateBps / 8 * (2 * delayNs + longestExtraNs) / 1000000000;
    const uint64_t socketBytes = 4 * (bdpBytes + bufferBytes) * 10 / std::max<uint64_t>(10, flows) + (1 << 20);
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(socketBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(socketBytes));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    Ptr<Node> left = CreateObject<Node>();
    Ptr<Node> right = CreateObject<Node>();
    InternetStackHelper stack;
    stack.Install(NodeContainer(left, right));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    NetDeviceContainer bottleneck = Join(left, right, rateBps, delayNs, bufferBytes, addresses);
    if (lossRatio > 0)
    {
        Ptr<RateErrorModel> loss = CreateObject<RateErrorModel>();
        loss->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        loss->SetRate(lossRatio);
        bottleneck.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(loss));
    }
    const Ipv4Address sinkAddress = right->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal();

    const uint64_t accessBps = 100 * rateBps;
    const uint16_t port = 5001;
    for (const Group& group : groups)
    {
        Ptr<Node> sender = left;
        if (group.extraRttNs > 0 || groups.size() > 1)
        {
            sender = CreateObject<Node>();
            stack.Install(sender);
            Join(sender, left, accessBps, group.extraRttNs / 2, 1u << 30, addresses);
        }
        sender->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", TypeIdValue(ControllerOf(group.cc)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(sinkAddress, port));
        for (uint32_t flow = 0; flow < group.flows; ++flow)
        {
            bulk.Install(sender).Start(Seconds(0));
        }
    }
    PacketSinkHelper sinks("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    Ptr<PacketSink> sink = DynamicCast<PacketSink>(sinks.Install(right).Get(0));
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << "{\"packets\": " << SentPackets(bottleneck.Get(0)) + SentPackets(bottleneck.Get(1))
              << ", \"received_bytes\": " << sink->GetTotalRx() << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
